// The examples in the public headers, run as they stand there, with those of the files that are named at the end; the
// last test holds headers and tests together.
#include "tests/api/header_examples.h"

#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <regex>

#include "tests/support/cache_folder.h"

namespace fusejit::test {
namespace {

namespace fj = fusejit;

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

TEST_F(HeaderExamples, SoftTargets) {
  fj::Tensor soft = fj::tensor<float>({0.5, 0.5}).reshape({1, 2});
  EXPECT_NEAR(fj::cross_entropy(fj::zeros({1, 2}), soft).item<float>(), 0.693147, 1e-6);
}

TEST_F(HeaderExamples, Operators) {
  using Bools = std::vector<bool>;
  fj::Tensor v = fj::tensor<float>({-1, 0, 2});
  EXPECT_EQ(((v == 0) | (v > 1)).to_vector<bool>(), (Bools{false, true, true}));
}

TEST_F(HeaderExamples, Places) {
  fj::Tensor m = fj::reshape(fj::arange(6), {2, 3});
  EXPECT_EQ(m[-1].to_vector<int>(), (std::vector<int>{3, 4, 5}));
  EXPECT_EQ(m[1][2].item<int>(), 5);
}

TEST_F(HeaderExamples, Pools) {
  EXPECT_EQ(fj::max_pool2d(fj::ones({1, 1, 6, 7}), 3, {.stride = 2, .ceil_mode = true}).shape(),
            (fj::Shape{1, 1, 3, 3}));
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
  EXPECT_EQ(fj::select(fj::reshape(fj::arange(4), {2, 2}), 1, -1).to_vector<int>(), (Ints{1, 3}));
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
  EXPECT_EQ(fj::adaptive_max_pool2d(fj::reshape(fj::arange(4).to(fj::f32), {1, 1, 2, 2}), 1).item<float>(), 3);
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

TEST_F(HeaderExamples, Recomputed) {
  fj::Tensor w = fj::ones({3}).requires_grad();
  fj::Tensor y = fj::recomputed([&] { return fj::exp(fj::sin(w)); });
  fj::Tensor g = fj::grad(fj::sum(y), {w})[0];
  EXPECT_NEAR(g.to_vector<float>()[0], std::exp(std::sin(1.0)) * std::cos(1.0), 1e-6);
  fj::nn::Sequential block(fj::nn::Conv2d(3, 8, 3), fj::nn::BatchNorm2d(8), fj::nn::ReLU());
  block.recompute();
  const auto gradient = [&] {
    return fj::grad(fj::sum(block(fj::ones({2, 3, 5, 5}))), {block.parameters()[1].value()})[0].to_vector<float>();
  };
  fj::models::ResNet net = fj::models::resnet18();
  net.recompute("layer1").recompute("layer2.0");
  const std::vector<float> again = gradient();
  block.recompute(false);
  EXPECT_EQ(again, gradient());
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

TEST_F(HeaderExamples, Models) {
  fj::models::ResNet net = fj::models::resnet34(10);
  fj::Tensor logits = net.eval()(fj::ones({2, 3, 64, 64}));
  EXPECT_EQ(logits.shape(), (fj::Shape{2, 10}));
}

TEST_F(HeaderExamples, UNet) {
  fj::models::UNet net = fj::models::unet(2, {.channels = 1, .width = 8, .depth = 2});
  fj::Tensor logits = net(fj::ones({2, 1, 16, 24}));
  EXPECT_EQ(logits.shape(), (fj::Shape{2, 2, 16, 24}));
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

// ---- the headers and these tests say the same
// -------------------------------------------------------------------------

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
  for (const char* file : {"tests/api/header_examples_test.cpp", "tests/api/data_examples_test.cpp",
                           "tests/api/nn/header_examples_test.cpp", "tests/api/training/header_examples_test.cpp"})
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
}  // namespace fusejit::test
