// The examples in the public headers, run as they stand there; the last test holds the two together.
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iostream>
#include <regex>
#include <sstream>

#include "fusejit/fusejit.h"
#include "tests/support/cache_folder.h"

namespace {

namespace fj = fusejit;

struct Net : fj::nn::ModuleOf<Net> {
  fj::nn::Conv2d conv = add("conv", fj::nn::Conv2d(1, 8, 3));
  fj::nn::Linear head = add("head", fj::nn::Linear(8 * 26 * 26, 10));
  fj::Tensor forward(const fj::Tensor& x) const override { return head(fj::flatten(fj::relu(conv(x)), 1)); }
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

TEST_F(HeaderExamples, Train) {
  fj::nn::Linear net(2, 1);
  fj::optim::SGD opt(net.parameters(), {.lr = 0.1});
  auto step = fj::train_step(net, opt, [&](fj::Tensor x, fj::Tensor y) { return fj::mse_loss(net(x), y); });
  float loss = step(fj::ones({4, 2}), fj::zeros({4, 1})).item<float>();
  EXPECT_LT(step(fj::ones({4, 2}), fj::zeros({4, 1})).item<float>(), loss);
}

// ---- the headers and this file say the same -------------------------------------------------------------------------

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
  own << std::ifstream(root / "tests/api/header_examples_test.cpp").rdbuf();
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
