// Modules: names, modes, state, layers' shapes, frozen networks, and the sentences of refusals.
#include <gtest/gtest.h>

#include <cmath>
#include <thread>

#include "fusejit/fusejit.h"
#include "tests/support/error_of.h"
#include "tests/support/temporary_folder.h"

namespace fusejit {
namespace {

using testing::error_of;

class Nn : public ::testing::Test {
 protected:
  void SetUp() override {
    set_options({.engine = "graph_interpreter"});
    manual_seed(11);
  }
};

TEST_F(Nn, NamesAreThoseOfPyTorch) {
  const nn::Sequential net(nn::Conv2d(1, 2, 3), nn::BatchNorm2d(2), nn::ReLU(), nn::Linear(4, 5));
  std::vector<std::string> names;
  for (const auto& [name, value] : net.state_dict()) names.push_back(name);
  EXPECT_EQ(names, (std::vector<std::string>{"0.bias", "0.weight", "1.bias", "1.running_mean", "1.running_var",
                                             "1.weight", "3.bias", "3.weight"}));
  EXPECT_EQ(net.parameters().size(), 6u);
}

TEST_F(Nn, WeightsLieWithinTheBound) {
  const nn::Conv2d conv(4, 8, 3, {.groups = 2});
  const std::vector<float> w = conv.weight().value().to_vector<float>();
  const float bound = 1 / std::sqrt(2.f * 9);
  float largest = 0;
  for (const float v : w) largest = std::max(largest, std::abs(v));
  EXPECT_LE(largest, bound);
  EXPECT_GT(largest, 0.9f * bound);
  manual_seed(11);
  EXPECT_EQ(nn::Conv2d(4, 8, 3, {.groups = 2}).weight().value().to_vector<float>(), w);
}

TEST_F(Nn, LayersHavePyTorchsShapes) {
  const Tensor x = ones({2, 4, 7, 9});
  const struct {
    std::shared_ptr<nn::Module> layer;
    Shape shape;
  } cases[] = {
      {std::make_shared<nn::Conv2d>(4, 6, 3), {2, 6, 5, 7}},
      {std::make_shared<nn::Conv2d>(4, 6, Pair(2, 4), nn::Conv2dOptions{.padding = "same"}), {2, 6, 7, 9}},
      {std::make_shared<nn::Conv2d>(4, 4, 3, nn::Conv2dOptions{.stride = 2, .padding = 1, .groups = 4}), {2, 4, 4, 5}},
      {std::make_shared<nn::Conv2d>(4, 6, 3, nn::Conv2dOptions{.padding = Padding(0, 1, 2, 0), .dilation = 2}),
       {2, 6, 5, 6}},
      {std::make_shared<nn::ConvBatchNorm2d>(4, 6, 3), {2, 6, 5, 7}},
      {std::make_shared<nn::MaxPool2d>(2), {2, 4, 3, 4}},
      {std::make_shared<nn::AvgPool2d>(3, PoolOptions{.stride = 2, .padding = 1}), {2, 4, 4, 5}},
      {std::make_shared<nn::AdaptiveAvgPool2d>(Pair(1, 3)), {2, 4, 1, 3}},
      {std::make_shared<nn::Flatten>(), {2, 252}},
      {std::make_shared<nn::Linear>(9, 3), {2, 4, 7, 3}},
      {std::make_shared<nn::BatchNorm2d>(4), {2, 4, 7, 9}},
      {std::make_shared<nn::Dropout>(0.3), {2, 4, 7, 9}},
  };
  for (const auto& c : cases) EXPECT_EQ((*c.layer)(x).eval().shape(), c.shape);
}

TEST_F(Nn, Bf16TravelsThroughFiles) {
  const Tensor x = tensor<float>({1, 2.5, -3}).to(bf16);
  const testing::TemporaryFolder folder;
  const std::string path = folder / "values.npz";
  save(StateDict{{"x", x}}, path);
  const Tensor y = load(path).at("x");
  EXPECT_EQ(y.dtype(), bf16);
  EXPECT_EQ(y.to_vector<float>(), (std::vector<float>{1, 2.5, -3}));
}

TEST_F(Nn, BatchNormInBothModes) {
  nn::BatchNorm2d norm(1, {.momentum = 0.5});
  const Tensor x = from_host(std::vector<float>{1, 2, 3, 4}, {1, 1, 2, 2});
  const std::vector<float> y = norm(x).to_vector<float>();
  EXPECT_NEAR(y[0], -1.5 / std::sqrt(1.25 + 1e-5), 1e-5);
  EXPECT_FLOAT_EQ(norm.state_dict().at("running_mean").item<float>(), 1.25f);
  norm.eval();
  EXPECT_NEAR(norm(x).to_vector<float>()[0], (1 - 1.25) / std::sqrt(0.5 + 0.5 * 5.0 / 3 + 1e-5), 1e-5);
  EXPECT_FLOAT_EQ(norm.state_dict().at("running_mean").item<float>(), 1.25f) << "evaluation leaves it alone";
}

TEST_F(Nn, ConvBatchNormSavesOnlyItsInputAndGivesTheSame) {
  const auto losses = [](bool save_only_input) {
    manual_seed(4);
    nn::Sequential net(nn::ConvBatchNorm2d(1, 3, 3, {.save_only_input = save_only_input}), nn::ReLU(),
                       nn::ConvBatchNorm2d(3, 2, 3, {.save_only_input = save_only_input}), nn::Flatten());
    optim::SGD opt(net.parameters(), {.lr = 0.1, .momentum = 0.9});
    auto step = train_step(net, opt, [&](const Tensor& x) { return mean(square(net(x) - 1)); });
    std::vector<float> values;
    for (int i = 0; i < 4; ++i) values.push_back(step(rand({2, 1, 6, 6})).item<float>());
    for (const auto& [name, value] : net.state_dict()) {
      const std::vector<float> v = value.to_vector<float>();
      values.insert(values.end(), v.begin(), v.end());
    }
    return values;
  };
  EXPECT_EQ(losses(true), losses(false));
}

TEST_F(Nn, FrozenNetworksDoNotChange) {
  nn::Sequential net(nn::Conv2d(2, 3, 3), nn::BatchNorm2d(3), nn::ReLU(), nn::Conv2d(3, 2, 1, {.bias = false}),
                     nn::BatchNorm2d(2), nn::Dropout(0.5), nn::Flatten());
  net(rand({4, 2, 5, 5})).eval();  // other running statistics than 0 and 1
  net.eval();
  const Tensor x = rand({2, 2, 5, 5}).eval();
  const std::vector<float> plain = net(x).to_vector<float>();
  net.train();
  const Frozen serve = net.freeze();
  const std::vector<float> frozen = serve(x).to_vector<float>();
  ASSERT_EQ(plain.size(), frozen.size());
  for (std::size_t i = 0; i < plain.size(); ++i) EXPECT_NEAR(plain[i], frozen[i], 1e-5);
  const std::int64_t traces = stats().traces;
  serve(x).eval();
  EXPECT_EQ(stats().traces, traces);

  optim::SGD opt(net.parameters(), {.lr = 1.0});
  auto step = train_step(net, opt, [&](const Tensor& t) { return sum(net(t)); });
  step(x);
  EXPECT_EQ(serve(x).to_vector<float>(), frozen);
  EXPECT_NE(net.state_dict().at("0.weight").to_vector<float>(), std::vector<float>());

  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] { EXPECT_EQ(serve(rand({t + 1, 2, 5, 5})).eval().size(0), t + 1); });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_NE(error_of([&] { serve(ones({2, 3, 5, 5})); }).find("conv2d"), std::string::npos);
}

// What a frozen network computes once from its parameters stays apart from the like, however many types of x it meets:
// the numbers below are the same operation on the same parameter.
struct ManyConstants : nn::ModuleOf<ManyConstants> {
  nn::Parameter p = parameter("p", ones({1}));
  Tensor forward(const Tensor& x) override {
    Tensor y = x * 0;
    for (int i = 3; i < 40; ++i) y = y * 2 - y + (p.value() * (i + 0.25)) * x;
    return y;
  }
};

TEST_F(Nn, FrozenNetworksKeepTheirConstantsApart) {
  const Frozen serve = ManyConstants().freeze();
  float want = 0;
  for (int i = 3; i < 40; ++i) want += static_cast<float>(i) + 0.25f;
  for (int n = 1; n <= 12; ++n)
    EXPECT_EQ(serve(ones({n})).to_vector<float>(), std::vector<float>(static_cast<std::size_t>(n), want));
}

TEST_F(Nn, AModuleCannotHoldItself) {
  nn::Sequential inner, outer;
  outer.push_back(inner);
  EXPECT_THROW(inner.push_back(outer), UserError);
  EXPECT_THROW(inner.push_back(inner), UserError);
  outer.push_back(inner);  // twice is no circle
  EXPECT_FALSE(outer.eval().is_training());
}

TEST_F(Nn, WholeNumbersStayExact) {
  const std::int64_t big = (std::int64_t{1} << 53) + 1;
  EXPECT_EQ(full({}, big, i64).item<std::int64_t>(), big);
  EXPECT_EQ((arange(1) + big).item<std::int64_t>(), big);
  EXPECT_TRUE(eq(full({}, big, i64), big).item<bool>());
  EXPECT_FALSE(ne(full({}, big, i64), big).item<bool>());
  EXPECT_THROW(Number(~std::uint64_t{0}), UserError);
}

TEST_F(Nn, ClippingInTheStepAndFurtherOutputs) {
  struct Net : nn::ModuleOf<Net> {
    nn::Parameter w = parameter("w", from_host(std::vector<float>{0, 0}, {2}));
    Tensor forward(const Tensor& x) override { return x * w.value(); }
  } net;
  optim::SGD opt(net.parameters(), {.lr = 1.0});
  auto step =
      train_step(net, opt, [&](const Tensor& x) { return std::pair(sum(net(x)), x * 2); }, {.max_grad_norm = 1.0});
  const auto [loss, twice] = step(tensor<float>({30, 40}));
  EXPECT_EQ(twice.to_vector<float>(), (std::vector<float>{60, 80}));
  EXPECT_NEAR(net.w.value().to_vector<float>()[0], -0.6, 1e-5);
  EXPECT_NEAR(net.w.value().to_vector<float>()[1], -0.8, 1e-5);
}

TEST_F(Nn, RefusesWithOneSentence) {
  const Tensor x = ones({1, 3, 4, 4});
  const struct {
    std::function<void()> action;
    std::string sentence;
  } cases[] = {
      {[&] { nn::Conv2d(4, 2, 3)(x); }, "conv2d"},
      {[&] { nn::Conv2d(3, 2, 9)(x); }, "conv2d"},
      {[&] { nn::Conv2d(3, 2, 3, {.stride = 2, .padding = "same"})(x); }, "needs stride 1"},
      {[&] { nn::Conv2d(3, 2, 3, {.padding = "full"}); }, "padding 'full' is not known"},
      {[&] { nn::Conv2d(3, 4, 3, {.groups = 2}); }, "do not divide into 2 groups"},
      {[&] { nn::BatchNorm2d(4)(x); }, "x must be [N,4,H,W]"},
      {[&] { nn::BatchNorm2d(4, {.affine = false})(x); }, "x must be [N,4,H,W]"},
      {[&] { nn::Dropout(1.5); }, "between 0 and 1"},
      {[&] { softmax(x, 4); }, "softmax"},
      {[&] { sum(x, {5}); }, "sum"},
      {[&] {
         x + ones({2, 5});
       },
       "add"},
      {[&] { x.size(9); }, "out of range"},
      {[&] { x.item<float>(); }, "48 elements"},
      {[&] { Tensor().eval(); }, "empty"},
      {[&] {
         from_host(std::vector<float>{1, 2}, {3});
       },
       "2 values given for shape [3]"},
      {[&] { borrow(static_cast<float*>(nullptr), {3}); }, "null"},
      {[&] { set_options({.engine = "magic"}); }, "engine 'magic'"},
      {[&] { set_options({.engine = "graph_interpreter", .rules = "some"}); }, "rules 'some'"},
      {[&] { set_options({.cudnn = "fused"}); }, "cudnn 'fused' is not known (off, precompiled, compiled)"},
      {[&] { set_options({.batch_norm = "quick"}); }, "batch_norm 'quick' is not known (exact, fast)"},
      {[&] { set_options({.winograd = "on"}); }, "winograd 'on' is not known (off, auto, always)"},
      {[&] { set_options({.compile = "later"}); }, "compile 'later' is not known (foreground, background)"},
      {[&] { set_options({.tune = "all"}); }, "tune 'all' is not known (off, quick, full)"},
      {[&] { x.to("tpu"); }, "device 'tpu'"},
      {[&] {
         cross_entropy(ones({2, 3}), ones({2}));
       },
       "cross_entropy"},
      {[&] { concat({}); }, "nothing to join"},
  };
  for (const auto& c : cases) {
    const std::string error = error_of(c.action);
    EXPECT_NE(error.find(c.sentence), std::string::npos) << error;
  }
  if (!is_available(Device("cuda:0"))) {
    EXPECT_THROW(x.to("cuda:0"), Error);
  }
}

TEST_F(Nn, PromotesAsPyTorch) {
  const Tensor i = tensor<std::int64_t>({3, 4}), f = tensor<float>({0.5, 1}), h = f.to(f16);
  const Tensor b = from_host(std::vector<std::int64_t>{1, 0}, {2}).to(boolean);
  EXPECT_EQ((i + f).dtype(), f32);
  EXPECT_EQ((i * 2).dtype(), i64);
  EXPECT_EQ((i * 2.5).dtype(), f32);
  EXPECT_EQ((i / i).dtype(), f32);
  EXPECT_EQ((b + i).dtype(), i64);
  EXPECT_EQ((b + 1).dtype(), i64);
  EXPECT_EQ((h * 0.3).dtype(), f16);
  EXPECT_EQ((h * i).dtype(), f16);
  EXPECT_EQ((h + f).dtype(), f32);
  EXPECT_EQ(exp(i).dtype(), f32);
  EXPECT_EQ((i > 3.5).dtype(), boolean);
  EXPECT_EQ((i > 3.5).to_vector<bool>(), (std::vector<bool>{false, true}));
  EXPECT_EQ((i * 2.5).to_vector<float>(), (std::vector<float>{7.5, 10}));
  EXPECT_EQ((i * 3).to_vector<std::int64_t>(), (std::vector<std::int64_t>{9, 12}));
  EXPECT_EQ((h * 0.3).to_vector<float>()[1], tensor<float>({0.3f}).to(f16).item<float>());
  EXPECT_EQ(where(b, i, f).to_vector<float>(), (std::vector<float>{3, 1}));
}

}  // namespace
}  // namespace fusejit
