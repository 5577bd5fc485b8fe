// The examples in the public headers, run as they stand there, those on training in training/; the last test holds
// headers and tests together.
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <regex>
#include <sstream>

#include "fusejit/dlpack.h"
#include "fusejit/fusejit.h"
#include "tests/support/cache_folder.h"
#include "tests/support/onnx_file.h"
#include "tests/support/temporary_folder.h"

namespace {

namespace fj = fusejit;

struct Net : fj::nn::ModuleOf<Net> {
  fj::nn::Conv2d conv = add("conv", fj::nn::Conv2d(1, 8, 3));
  fj::nn::Linear head = add("head", fj::nn::Linear(8 * 26 * 26, 10));
  fj::Tensor forward(const fj::Tensor& x) const override { return head(fj::flatten(fj::relu(conv(x)), 1)); }
};

struct Squares : fj::data::Dataset {
  std::int64_t size() const override { return 100; }
  fj::data::Example get(std::int64_t i) const override {
    return {fj::data::Image{8, 8, 1, std::vector<std::uint8_t>(64, static_cast<std::uint8_t>(i))}, i % 10};
  }
};

class HeaderExamples : public ::testing::Test {
 protected:
  void SetUp() override { std::cout.rdbuf(printed_.rdbuf()); }
  void TearDown() override {
    std::cout.rdbuf(before_);
    fj::set_options({});
  }
  std::ostringstream printed_;
  std::streambuf* before_ = std::cout.rdbuf();
};

TEST_F(HeaderExamples, Tensor) {
  fj::Tensor x = fj::from_host(std::vector<float>{1, 2, 3, 4}, {2, 2});
  fj::Tensor y = fj::matmul(x, x) + 1;
  EXPECT_FALSE(y.evaluated());
  std::vector<float> values = y.to_vector<float>();
  EXPECT_EQ(values, (std::vector<float>{8, 11, 16, 23}));
}

TEST_F(HeaderExamples, Ops) {
  fj::Tensor x = fj::tensor<float>({-1, 0, 2});
  fj::Tensor y = fj::where(x > 0, x * 3, fj::exp(x) - 1);
  std::cout << y.sum().item<float>();
  EXPECT_EQ(printed_.str(), "5.36788");
}

TEST_F(HeaderExamples, Operators) {
  using Bools = std::vector<bool>;
  fj::Tensor v = fj::tensor<float>({-1, 0, 2});
  EXPECT_EQ(((v == 0) | (v > 1)).to_vector<bool>(), (Bools{false, true, true}));
}

TEST_F(HeaderExamples, Sequences) {
  using Ints = std::vector<int>;
  using Floats = std::vector<float>;
  EXPECT_EQ(fj::arange(2, 11, 3).to_vector<int>(), (Ints{2, 5, 8}));
  EXPECT_EQ(fj::linspace(0, 1, 5).to_vector<float>(), (Floats{0, 0.25f, 0.5f, 0.75f, 1}));
  EXPECT_EQ(fj::full_like(fj::tensor<float>({1, 2}), 7).to_vector<float>(), (Floats{7, 7}));
}

TEST_F(HeaderExamples, ComposedShapes) {
  using Ints = std::vector<int>;
  using Floats = std::vector<float>;
  fj::Tensor rows = fj::stack({fj::tensor<float>({1, 2}), fj::tensor<float>({3, 4})});
  EXPECT_EQ(fj::norm(rows, 1, {1}).to_vector<float>(), (Floats{3, 7}));
  EXPECT_EQ(fj::split(fj::arange(5), 2)[2].to_vector<int>(), (Ints{4}));
  EXPECT_EQ(fj::split(fj::arange(5), {1, 4})[1].to_vector<int>(), (Ints{1, 2, 3, 4}));
  EXPECT_EQ(fj::chunk(fj::arange(5), 2)[0].to_vector<int>(), (Ints{0, 1, 2}));
  EXPECT_EQ(fj::unbind(fj::reshape(fj::arange(4), {2, 2}), 1)[1].to_vector<int>(), (Ints{1, 3}));
  EXPECT_EQ(fj::diagonal(fj::reshape(fj::arange(9), {3, 3}), 1).to_vector<int>(), (Ints{1, 5}));
  EXPECT_EQ(fj::tril(fj::ones({2, 2})).to_vector<float>(), (Floats{1, 0, 1, 1}));
  EXPECT_EQ(fj::triu(fj::ones({2, 2}), 1).to_vector<float>(), (Floats{0, 1, 0, 0}));
}

TEST_F(HeaderExamples, ComposedPlaces) {
  using Floats = std::vector<float>;
  EXPECT_EQ(fj::index_select(fj::tensor<float>({5, 6, 7}), 0, fj::tensor<int>({2, 2, 0})).to_vector<float>(),
            (Floats{7, 7, 5}));
  EXPECT_EQ(fj::take(fj::tensor<float>({5, 6, 7}), fj::tensor<int>({1, -1})).to_vector<float>(), (Floats{6, 7}));
  EXPECT_EQ(fj::masked_fill(fj::tensor<float>({1, 2}), fj::tensor<int>({1, 0}) > 0, 9).to_vector<float>(),
            (Floats{9, 2}));
  EXPECT_EQ(fj::scatter_add(fj::zeros({3}), 0, fj::tensor<int>({0, 2, 2}), fj::ones({3})).to_vector<float>(),
            (Floats{1, 0, 2}));
}

TEST_F(HeaderExamples, ComposedOrder) {
  EXPECT_EQ(fj::sort(fj::tensor<float>({3, 1, 2})).values.to_vector<float>(), (std::vector<float>{1, 2, 3}));
  EXPECT_EQ(fj::topk(fj::tensor<float>({3, 1, 2}), 2).indices.to_vector<int>(), (std::vector<int>{0, 2}));
}

TEST_F(HeaderExamples, ComposedSums) {
  using Floats = std::vector<float>;
  EXPECT_EQ(fj::std(fj::tensor<float>({1, 3, 5})).item<float>(), 2);
  EXPECT_NEAR(fj::logsumexp(fj::full({4}, 100)).item<float>(), 101.386, 1e-3);
  EXPECT_EQ(fj::cumsum(fj::tensor<float>({1, 2, 3}), 0).to_vector<float>(), (Floats{1, 3, 6}));
  EXPECT_EQ(fj::dot(fj::tensor<float>({1, 2}), fj::tensor<float>({3, 4})).item<float>(), 11);
  fj::Tensor m = fj::reshape(fj::tensor<float>({1, 2, 3, 4}), {2, 2});
  EXPECT_EQ(fj::einsum("ij,kj->ik", {m, m}).to_vector<float>(), (Floats{5, 11, 11, 25}));
  EXPECT_EQ(fj::einsum("ii", {m}).item<float>(), 5);
}

TEST_F(HeaderExamples, ComposedImages) {
  EXPECT_EQ(fj::conv1d(fj::ones({1, 1, 4}), fj::ones({1, 1, 3}), {.padding = 1}).to_vector<float>(),
            (std::vector<float>{2, 3, 3, 2}));
  EXPECT_EQ(fj::pixel_shuffle(fj::reshape(fj::arange(4), {4, 1, 1}), 2).to_vector<int>(),
            (std::vector<int>{0, 1, 2, 3}));
  EXPECT_EQ(fj::interpolate(fj::ones({1, 1, 2, 2}), {.scale_factor = 2}).size(2), 4);
  fj::Tensor image = fj::reshape(fj::tensor<float>({1, 3, 5, 7}), {1, 1, 2, 2});
  EXPECT_EQ(fj::grid_sample(image, fj::zeros({1, 1, 1, 2})).item<float>(), 4);
}

TEST_F(HeaderExamples, Distributions) {
  fj::manual_seed(1);
  fj::Tensor noise = fj::randn({2, 3});
  EXPECT_EQ(noise.shape(), (fj::Shape{2, 3}));
  fj::Tensor around = fj::normal(10, 2, {4});
  EXPECT_NEAR(fj::mean(around).item<float>(), 10, 8.2 * 2);
  fj::Tensor dice = fj::randint(1, 7, {10});
  EXPECT_GE(fj::amin(dice).item<int>(), 1);
  EXPECT_LE(fj::amax(dice).item<int>(), 6);
  fj::Tensor order = fj::randperm(5);
  EXPECT_EQ(fj::sum(order).item<int>(), 10);
  fj::Tensor coins = fj::bernoulli(fj::full({10}, 0.5));
  EXPECT_TRUE(fj::all((coins == 0) | (coins == 1)).item<bool>());
}

TEST_F(HeaderExamples, Grad) {
  fj::Tensor w = fj::ones({3}).requires_grad();
  fj::Tensor g = fj::grad(fj::sum(w * w), {w})[0];
  EXPECT_EQ(g.to_vector<float>(), (std::vector<float>{2, 2, 2}));
}

TEST_F(HeaderExamples, ValueAndGrad) {
  auto f = fj::value_and_grad([](const std::vector<fj::Tensor>& in) { return fj::sum(in[0] * in[0]); });
  auto [value, gradients] = f({fj::tensor<float>({1, 2})});
  EXPECT_EQ(value.item<float>(), 5);
  EXPECT_EQ(gradients[0].to_vector<float>(), (std::vector<float>{2, 4}));
}

TEST_F(HeaderExamples, NoGrad) {
  const fj::NoGrad off;
  EXPECT_FALSE((fj::ones({2}).requires_grad() * 2).needs_grad());
}

TEST_F(HeaderExamples, CustomGradient) {
  auto square = fj::custom_gradient(
      [](auto& in) {
        return fj::Saved{in[0] * in[0], {in[0]}};
      },
      [](auto& saved, auto& g) { return std::vector{2 * saved[0] * g}; });
  fj::Tensor x = fj::tensor<float>({3}).requires_grad();
  EXPECT_EQ(fj::grad(fj::sum(square({x})), {x})[0].item<float>(), 6);
  const auto broken = fj::custom_gradient(
      [](auto& in) {
        return fj::Saved{in[0] * in[0], {}};
      },
      [](auto&, auto& g) {
        return std::vector{g, g};
      });
  EXPECT_THROW(fj::grad(fj::sum(broken({x})), {x}), fj::UserError) << "two gradients for one input";
  const auto other = fj::custom_gradient(
      [](auto& in) {
        return fj::Saved{in[0] * in[0], {}};
      },
      [](auto&, auto& g) { return std::vector{g.to(fj::f64)}; });
  EXPECT_THROW(fj::grad(fj::sum(other({x})), {x}), fj::UserError) << "a gradient of another dtype";
}

TEST_F(HeaderExamples, Random) {
  fj::manual_seed(1);
  std::vector<float> first = fj::rand({3}).to_vector<float>();
  fj::manual_seed(1);
  std::vector<float> again = fj::rand({3}).to_vector<float>();
  EXPECT_EQ(first, again);
}

TEST_F(HeaderExamples, Memory) {
  fj::memory::reset_peak();
  fj::Tensor x = fj::ones({256, 1024}).eval();
  std::int64_t bytes = fj::memory::peak();
  EXPECT_GE(bytes, 1 << 20);
  fj::memory::release();
  EXPECT_LE(fj::memory::allocated(), fj::memory::reserved());
}

TEST_F(HeaderExamples, Io) {
  const std::string path =
      (std::filesystem::temp_directory_path() / ("header_examples_" + std::to_string(::getpid()) + ".npz")).string();
  fj::save({{"x", fj::tensor<float>({1, 2})}}, path);
  fj::Tensor x = fj::load(path).at("x");
  EXPECT_EQ(x.to_vector<float>(), (std::vector<float>{1, 2}));
  std::filesystem::remove(path);
}

TEST_F(HeaderExamples, Metadata) {
  const std::string path =
      (std::filesystem::temp_directory_path() / ("header_examples_" + std::to_string(::getpid()) + ".safetensors"))
          .string();
  fj::save({{"x", fj::ones({2})}}, path, {{"format", "pt"}});  // as PyTorch's readers of .safetensors ask
  std::cout << fj::load_metadata(path).at("format");
  EXPECT_EQ(printed_.str(), "pt");
  EXPECT_EQ(fj::load(path).at("x").to_vector<float>(), (std::vector<float>{1, 1}));
  std::filesystem::remove(path);
}

TEST_F(HeaderExamples, Host) {
  {
    std::vector<float> pitched = {1, 2, 0, 3, 4, 0};  // rows of 2, each in 3
    fj::Tensor rows = fj::from_host(pitched, {2, 2}, {3, 1});
    EXPECT_EQ(rows.to_vector<float>(), (std::vector<float>{1, 2, 3, 4}));
  }
  float columns[] = {1, 4, 2, 5, 3, 6};
  fj::Tensor x = fj::borrow(columns, {2, 3}, {1, 2});  // 1 2 3, 4 5 6
  EXPECT_EQ(x.to_vector<float>(), (std::vector<float>{1, 2, 3, 4, 5, 6}));
  for (float v : x.span<float>()) std::cout << v << ' ';
  fj::HostView<float> view = fj::host_view<float>(fj::ones({2, 3}) * 2);
  std::cout << view(1, 2) << ' ' << view.strides()[0];  // 2 3
  EXPECT_EQ(printed_.str(), "1 2 3 4 5 6 2 3");
}

TEST_F(HeaderExamples, Dlpack) {
  fj::Tensor x = fj::from_dlpack(fj::to_dlpack(fj::ones({2, 3})));
  EXPECT_EQ(x.to_vector<float>(), std::vector<float>(6, 1));
}

TEST_F(HeaderExamples, SaveGraph) {
  const std::string path =
      (std::filesystem::temp_directory_path() / ("header_examples_" + std::to_string(::getpid()) + ".fj")).string();
  fj::Tensor p = fj::tensor<float>({1, 2});
  fj::save_graph(path, {fj::exp(p) * 2});
  std::stringstream text;
  text << std::ifstream(path).rdbuf();
  EXPECT_EQ(text.str(),
            "graph @main(%p0: f32[2]) {\n  %0 = exp(%p0) : f32[2]\n  %1 = mul(%0, 2) : f32[2]\n  return %1\n}\n");
  std::filesystem::remove(path);
}

TEST_F(HeaderExamples, Module) {
  Net net;
  EXPECT_EQ(net(fj::ones({2, 1, 28, 28})).shape(), (fj::Shape{2, 10}));
  EXPECT_EQ(net.named_parameters().front().first, "conv.weight");
}

TEST_F(HeaderExamples, Unloaded) {
  fj::nn::Linear head(512, 10);
  fj::nn::Unloaded left = head.load_state_dict({{"weight", fj::ones({1000, 512})}}, {.strict = false});
  std::cout << left.misshapen[0].given.shape[0] << ' ' << left.missing[0];  // 1000 bias
  EXPECT_EQ(printed_.str(), "1000 bias");
}

TEST_F(HeaderExamples, Layers) {
  fj::nn::Sequential net(fj::nn::Conv2d(1, 8, 3, {.padding = "same"}), fj::nn::ReLU(), fj::nn::Flatten(),
                         fj::nn::Linear(8 * 4 * 4, 10));
  fj::Tensor logits = net(fj::ones({2, 1, 4, 4}));
  EXPECT_EQ(logits.shape(), (fj::Shape{2, 10}));
}

TEST_F(HeaderExamples, NamedLayers) {
  fj::nn::Sequential head;
  head.push_back("norm", fj::nn::BatchNorm2d(8)).push_back(fj::nn::ReLU()).push_back(fj::nn::Conv2d(8, 4, 1));
  bool found = head.state_dict().contains("2.weight");  // and "norm.weight"
  EXPECT_TRUE(found && head.state_dict().contains("norm.weight"));
  EXPECT_THROW(head.push_back("norm", fj::nn::ReLU()), fj::UserError);
  EXPECT_EQ(head(fj::ones({2, 8, 3, 3})).shape(), (fj::Shape{2, 4, 3, 3}));
}

TEST_F(HeaderExamples, Functions) {
  fj::nn::Sequential net(fj::nn::Conv2d(1, 8, 3), fj::relu, [](const fj::Tensor& x) { return x.mean({2, 3}); });
  EXPECT_EQ(net(fj::ones({2, 1, 5, 5})).shape(), (fj::Shape{2, 8}));
}

TEST_F(HeaderExamples, Lists) {
  fj::nn::ModuleList layers(fj::nn::Linear(4, 4), fj::nn::Linear(4, 4));
  fj::Tensor y = fj::ones({2, 4});
  for (fj::nn::Module& layer : layers) y = fj::relu(layer(y)) + y;
  EXPECT_EQ(y.shape(), (fj::Shape{2, 4}));
}

TEST_F(HeaderExamples, Dictionaries) {
  fj::nn::ModuleDict heads({{"boxes", fj::nn::Linear(8, 4)}, {"classes", fj::nn::Linear(8, 10)}});
  fj::Tensor boxes = heads["boxes"](fj::ones({2, 8}));  // [2,4]
  for (const auto& [name, head] : heads) std::cout << name << (*head)(fj::ones({2, 8})).shape().str() << ' ';
  EXPECT_EQ(printed_.str(), "boxes[2,4] classes[2,10] ");
  EXPECT_EQ(boxes.shape(), (fj::Shape{2, 4}));
}

TEST_F(HeaderExamples, Convolutions) {
  fj::nn::Conv2d conv(3, 8, 3, {.padding = "same", .padding_mode = "reflect"});
  EXPECT_EQ(conv(fj::ones({1, 3, 5, 6})).shape(), (fj::Shape{1, 8, 5, 6}));
  fj::nn::ConvTranspose2d up(8, 4, 2, {.stride = 2});  // twice the size
  EXPECT_EQ(up(fj::ones({1, 8, 5, 6})).shape(), (fj::Shape{1, 4, 10, 12}));
  fj::nn::Upsample twice({.scale_factor = 2, .mode = "bilinear"});
  EXPECT_EQ(twice(fj::ones({1, 8, 5, 6})).shape(), (fj::Shape{1, 8, 10, 12}));
}

TEST_F(HeaderExamples, Norms) {
  fj::nn::LayerNorm norm(64);          // over the last axis
  fj::nn::LayerNorm image({8, 4, 4});  // over the last three
  EXPECT_EQ(norm(fj::ones({2, 64})).shape(), (fj::Shape{2, 64}));
  EXPECT_EQ(image(fj::ones({2, 8, 4, 4})).shape(), (fj::Shape{2, 8, 4, 4}));
}

TEST_F(HeaderExamples, Embedding) {
  fj::nn::Embedding words(1000, 16, {.padding_idx = 0});
  fj::Tensor rows = words(fj::tensor<std::int64_t>({3, 1, 4}));  // [3,16]
  EXPECT_EQ(rows.shape(), (fj::Shape{3, 16}));
}

TEST_F(HeaderExamples, Attention) {
  fj::nn::MultiheadAttention attention(32, 4);
  fj::Tensor y = attention(fj::ones({2, 10, 32}));                              // to itself
  fj::Tensor z = attention(y, fj::ones({2, 5, 32}), fj::ones({2, 5, 32}), {});  // [2,10,32]
  EXPECT_EQ(y.shape(), (fj::Shape{2, 10, 32}));
  EXPECT_EQ(z.shape(), (fj::Shape{2, 10, 32}));
}

TEST_F(HeaderExamples, Init) {
  fj::nn::Conv2d conv(3, 8, 3);
  fj::nn::init::kaiming_normal_(conv.weight(), {.mode = "fan_out", .nonlinearity = "relu"});
  EXPECT_EQ(conv.weight().value().shape(), (fj::Shape{8, 3, 3, 3}));
}

TEST_F(HeaderExamples, Models) {
  fj::models::ResNet net = fj::models::resnet34(10);
  fj::Tensor logits = net.eval()(fj::ones({2, 3, 64, 64}));
  EXPECT_EQ(logits.shape(), (fj::Shape{2, 10}));
}

TEST_F(HeaderExamples, Optimizers) {
  const fj::nn::Linear body(3, 2), head(2, 1);
  fj::optim::SGD opt({{.parameters = body.parameters()}, {.parameters = head.parameters(), .lr = 0.01}},
                     fj::optim::SgdOptions{.lr = 0.1, .momentum = 0.9});
  fj::optim::StepLR schedule(opt, 1, 0.7);
  schedule.step();
  EXPECT_EQ(opt.lr(0), 0.1 * 0.7);
  EXPECT_EQ(opt.lr(1), 0.01 * 0.7);
}

TEST_F(HeaderExamples, LoopOfOnesOwn) {
  fj::nn::Linear body(3, 2), head(2, 1);
  fj::optim::SGD opt({{.parameters = body.parameters()}, {.parameters = head.parameters(), .lr = 0.01}},
                     fj::optim::SgdOptions{.lr = 0.1, .momentum = 0.9});
  const fj::Tensor x = fj::ones({4, 3}), y = fj::zeros({4, 1});
  float before = 1e9f;
  for (int i = 0; i < 3; ++i) {
    fj::Tensor loss = fj::mse_loss(head(body(x)), y);
    opt.step(loss);
    float value = loss.item<float>();
    EXPECT_LT(value, before);
    before = value;
  }
}

TEST_F(HeaderExamples, Runtime) {
  fj::set_options({.rules = "none", .threads = 1});
  EXPECT_EQ(fj::options().rules, "none");
}

TEST_F(HeaderExamples, Warmup) {
  const fusejit::test::CacheFolder cache;
  auto f = [](fj::Tensor x) { return fj::softmax(fj::relu(x), 1); };
  fj::compile(f, {{fj::f32, {8, 10}}});
  const std::int64_t compiled = fj::stats().kernels_compiled;
  fj::Tensor x = fj::ones({8, 10}).eval();
  const std::int64_t ones = fj::stats().kernels_compiled - compiled;
  fj::Tensor y = f(fj::ones({8, 10}).eval()).eval();  // compiles nothing
  EXPECT_EQ(fj::stats().kernels_compiled, compiled + ones);
}

TEST_F(HeaderExamples, Signatures) {
  const fusejit::test::CacheFolder cache;
  std::filesystem::current_path(cache.path(""));
  fj::record_signatures("run.fjs");
  fj::relu(fj::ones({3}).eval()).eval();
  fj::record_signatures("");
  fj::warmup("run.fjs",
             {.progress = [](const fj::WarmupProgress& p) { std::cout << p.done << '/' << p.total << '\n'; }});
  EXPECT_EQ(printed_.str(), "1/2\n2/2\n");
  std::filesystem::current_path(FUSEJIT_SOURCE_DIR);
}

TEST_F(HeaderExamples, Profile) {
  const fusejit::test::CacheFolder folder;
  std::filesystem::current_path(folder.path(""));
  fj::Profile profile;
  fj::relu(fj::ones({64, 1024}).eval()).eval();
  profile.stop();
  std::cout << profile.table();   // by kernel: calls, time, bytes, GFLOP, how near to what the machine can do
  profile.trace("profile.json");  // for https://ui.perfetto.dev or chrome://tracing
  EXPECT_NE(printed_.str().find("roof %"), std::string::npos);
  EXPECT_TRUE(std::filesystem::exists("profile.json"));
  std::filesystem::current_path(FUSEJIT_SOURCE_DIR);
}

TEST_F(HeaderExamples, Log) {
  fj::set_log([](std::string_view line) { std::cout << line << '\n'; });
  fj::set_options({.log_fusions = true});
  fj::exp(fj::relu(fj::ones({64, 1024}).eval())).eval();
  EXPECT_NE(printed_.str().find("fusion activation=relu,exp ops=2 "), std::string::npos) << printed_.str();
  fj::set_log({});
  fj::set_options({});
}

TEST_F(HeaderExamples, Autocast) {
  fj::nn::Linear net(4, 2);
  fj::optim::SGD opt(net.parameters(), {.lr = 0.1});
  auto step = fj::train_step(net, opt, [&](fj::Tensor x, fj::Tensor y) { return fj::mse_loss(net(x), y); },
                             {.autocast = fj::bf16});
  float loss = step(fj::ones({4, 4}), fj::zeros({4, 2})).item<float>();
  EXPECT_LT(step(fj::ones({4, 4}), fj::zeros({4, 2})).item<float>(), loss);
}

TEST_F(HeaderExamples, AutocastScope) {
  fj::Tensor x = fj::ones({2, 8}), w = fj::ones({3, 8});
  const fj::Autocast scope(fj::bf16);
  std::cout << fj::linear(x, w).type().str();
  std::cout << fj::softmax(fj::linear(x, w), 1).type().str();
  EXPECT_EQ(printed_.str(), "bf16[2,3]f32[2,3]");
}

TEST_F(HeaderExamples, Train) {
  fj::nn::Linear net(2, 1);
  fj::optim::SGD opt(net.parameters(), {.lr = 0.1});
  auto step = fj::train_step(net, opt, [&](fj::Tensor x, fj::Tensor y) { return fj::mse_loss(net(x), y); });
  float loss = step(fj::ones({4, 2}), fj::zeros({4, 1})).item<float>();
  EXPECT_LT(step(fj::ones({4, 2}), fj::zeros({4, 1})).item<float>(), loss);
}

TEST_F(HeaderExamples, Image) {
  const std::string path = FUSEJIT_SOURCE_DIR "/tests/reference/images/gray.jpg";
  fj::data::Image photo = fj::data::read_image(path, fj::data::ImageReadMode::rgb);
  fj::data::Image half = fj::data::resize(photo, photo.height / 2, photo.width / 2);
  EXPECT_EQ(half.pixels.size(), 9u * 11 * 3);
}

TEST_F(HeaderExamples, Transforms) {
  const fj::data::Image image = fj::data::read_image(FUSEJIT_SOURCE_DIR "/tests/reference/images/photo.png");
  const std::uint64_t seed = 1;
  const std::int64_t epoch = 2, index = 3;
  fj::data::Compose augment({fj::data::RandomResizedCrop(224), fj::data::RandomHorizontalFlip(), fj::data::ToTensor(),
                             fj::data::Normalize({0.485, 0.456, 0.406}, {0.229, 0.224, 0.225})});
  fj::data::Draws draws(seed, epoch, index);
  fj::data::Image ready = augment(image, draws);
  EXPECT_EQ(ready.pixels.size(), 224u * 224 * 3);
}

TEST_F(HeaderExamples, DatasetOfOnesOwn) {
  fj::data::DataLoader loader(std::make_shared<Squares>(), {.batch_size = 30});
  const fj::data::Batch batch = *loader.begin();
  EXPECT_EQ(batch.images.shape(), (fj::Shape{30, 1, 8, 8}));
  EXPECT_EQ(batch.labels.to_vector<std::int64_t>()[29], 9);
}

TEST_F(HeaderExamples, DataLoader) {
  const fusejit::test::CacheFolder folder;
  const std::string directory = folder.path("");
  std::ofstream(directory + "/train-images-idx3-ubyte", std::ios::binary)
      << std::string("\0\0\x08\x03\0\0\0\x64\0\0\0\x1c\0\0\0\x1c", 16) << std::string(100 * 28 * 28, 'x');
  std::ofstream(directory + "/train-labels-idx1-ubyte", std::ios::binary)
      << std::string("\0\0\x08\x01\0\0\0\x64", 8) << std::string(100, '\3');
  std::int64_t images = 0;
  auto digits = std::make_shared<fj::data::MNIST>(directory, fj::data::Split::train);
  fj::data::DataLoader loader(digits, {.batch_size = 64, .shuffle = true, .num_workers = 2, .seed = 1});
  for (auto [x, y] : loader) images += x.size(0);  // f32 [64,1,28,28] and i64 [64]
  EXPECT_EQ(images, 100);
}

TEST_F(HeaderExamples, Progress) {
  const std::int64_t images = 1000;
  const double loss = 0.5;
  testing::internal::CaptureStdout();
  fj::data::Progress progress("epoch 1/3", images);
  for (std::int64_t done = 100; done <= images; done += 100) progress.show(done, loss);
  progress.finish();  // epoch 1/3 100 %   2556 images/s  loss 0.3683  0 s left
  const std::string text = testing::internal::GetCapturedStdout();
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 10) << text;
  EXPECT_NE(text.find("epoch 1/3  10 %  "), std::string::npos) << text;
  EXPECT_NE(text.find("  loss 0.5000  0 s left\n"), std::string::npos) << text;
}

TEST_F(HeaderExamples, Onnx) {
  namespace file = fusejit::testing::onnx_file;
  const fusejit::testing::TemporaryFolder folder;
  const std::string path = folder / "model.onnx";
  const std::string graph = file::node("Flatten", {"x"}, {"f"}) + file::node("Gemm", {"f", "0.weight"}, {"y"}) +
                            file::initializer("0.weight", {16, 1}, file::kFloat, std::string(16 * 4, '\0')) +
                            file::port(11, "x", {-1, 1, 4, 4}) + file::port(12, "y", {-1, 1});
  fusejit::testing::write_bytes(path, file::model(graph));
  try {
    fj::onnx::load(path);
  } catch (const fj::UnsupportedError& error) {
    GTEST_SKIP() << error.what();
  }
  fj::onnx::Model net = fj::onnx::load(path);
  fj::Tensor y = net(fj::ones({2, 1, 4, 4}));                       // of one input and one result
  std::vector<fj::Tensor> all = net.run({fj::ones({8, 1, 4, 4})});  // of any; another batch plans anew
  fj::Frozen serve = net.freeze();
  fj::optim::SGD opt(net.parameters(), {.lr = 0.1});
  std::cout << net.state_dict().contains("0.weight") << ' ' << all[0].shape()[0];
  EXPECT_EQ(printed_.str(), "1 8");
  EXPECT_EQ(y.to_vector<float>(), std::vector<float>(2));
  EXPECT_EQ(serve(fj::ones({1, 1, 4, 4})).item<float>(), 0);
}

// ---- the headers and these tests say the same -------------------------------------------------------------------------

std::string squeezed(const std::string& code) {
  static const std::regex comment("//[^\n]*"), blanks("\\s+");
  return std::regex_replace(std::regex_replace(code, comment, ""), blanks, "");
}

// Runs of comment lines that are indented by three blanks.
std::vector<std::string> examples_of(const std::filesystem::path& header) {
  std::ifstream file(header);
  std::vector<std::string> examples;
  static const std::regex example("\\s*//   (.*)");
  bool inside = false;
  std::smatch match;
  for (std::string line; std::getline(file, line);) {
    const bool is_example = std::regex_match(line, match, example);
    if (is_example && !inside) examples.emplace_back();
    if (is_example) examples.back() += match[1].str() + "\n";
    inside = is_example;
  }
  return examples;
}

TEST(HeaderExamplesAre, TheseTests) {
  const std::filesystem::path root(FUSEJIT_SOURCE_DIR);
  std::stringstream own;
  for (const char* file : {"tests/api/header_examples_test.cpp", "tests/api/training/header_examples_test.cpp"})
    own << std::ifstream(root / file).rdbuf();
  const std::string tests = squeezed(own.str());
  int found = 0;
  for (const auto& header : std::filesystem::recursive_directory_iterator(root / "frontend/include/fusejit")) {
    if (header.path().extension() != ".h") continue;
    for (const std::string& example : examples_of(header.path())) {
      // A test may look at a value in between: each statement must be there.
      std::stringstream statements(squeezed(example));
      for (std::string statement; std::getline(statements, statement, ';'); ++found)
        EXPECT_NE(tests.find(statement), std::string::npos) << header.path() << ": no test runs\n" << example;
    }
  }
  EXPECT_GE(found, 30);
}

}  // namespace
