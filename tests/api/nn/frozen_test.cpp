// Frozen networks on every engine: what depends on their parameters alone, packed weights included, is computed once,
// changes no bit, and goes when they go.
#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "tests/api/engines.h"

namespace fusejit::testing {
namespace {

class FrozenNetworks : public ::testing::TestWithParam<EngineCase> {
 protected:
  void SetUp() override {
    if (const std::string why = select_engine(GetParam()); !why.empty()) GTEST_SKIP() << why;
    set_options({.engine = GetParam().engine, .target = GetParam().target, .threads = 2});
    manual_seed(5);
  }
  void TearDown() override { set_options({}); }
  bool has_plans() const { return std::string_view(GetParam().engine) != "graph_interpreter"; }
  Strictly strictly_;
};

nn::Sequential network() {
  return nn::Sequential(nn::Conv2d(3, 16, 3), nn::BatchNorm2d(16), nn::ReLU(), nn::Conv2d(16, 8, 3, {.bias = false}),
                        nn::Flatten(), nn::Linear(8 * 4 * 4, 5));
}

TEST_P(FrozenNetworks, PackTheirWeightsOnce) {
  nn::Sequential net = network();
  net(rand({4, 3, 8, 8})).eval();  // other running statistics than 0 and 1
  net.eval();
  const Frozen serve = net.freeze();
  const Tensor x = rand({2, 3, 8, 8}).eval();
  const std::vector<float> first = serve(x).to_vector<float>();
  const PlanStatistics cold = stats().last_plan;
  EXPECT_EQ(serve(x).to_vector<float>(), first);
  const PlanStatistics warm = stats().last_plan;
  EXPECT_EQ(serve(x).to_vector<float>(), first);
  EXPECT_EQ(stats().last_plan.kernels, warm.kernels);
  if (!has_plans()) return;
  EXPECT_LE(warm.kernels, cold.kernels - 2) << "two convolutions have weights to pack";
  // In a larger trace, and in one of its own whose plan is another: the same bytes.
  EXPECT_EQ((serve(x) * 2).to_vector<float>()[0], first[0] * 2);
  const Tensor both = concat({x, x}, 0).eval();
  const std::vector<float> twice = serve(both).to_vector<float>();
  const std::int64_t before = stats().last_plan.kernels;
  EXPECT_EQ(serve(both).to_vector<float>(), twice);
  EXPECT_LE(stats().last_plan.kernels, before);
}

TEST_P(FrozenNetworks, FoldNormsIntoConvolutionsInGroups) {
  nn::Sequential net(nn::Conv2d(6, 12, 3, {.padding = 1, .groups = 6, .bias = false}), nn::BatchNorm2d(12), nn::ReLU6(),
                     nn::Conv2d(12, 8, 1, {.groups = 4}), nn::BatchNorm2d(8));
  net(rand({4, 6, 8, 8})).eval();  // other running statistics than 0 and 1
  net.eval();
  const Tensor x = rand({2, 6, 8, 8}).eval();
  const std::vector<float> plain = net(x).to_vector<float>(), frozen = net.freeze()(x).to_vector<float>();
  for (std::size_t i = 0; i < plain.size(); ++i) ASSERT_NEAR(frozen[i], plain[i], 1e-5) << "element " << i;
}

// A call's result is computed from a plan that is known, or, where something else is computed with it, from its nodes.
TEST_P(FrozenNetworks, MeanTheSameAloneAndAsAPart) {
  nn::Sequential net(nn::Conv2d(3, 3, 3, {.padding = 1}), nn::BatchNorm2d(3), nn::ReLU());
  net(rand({4, 3, 8, 8})).eval();
  net.eval();
  const Frozen serve = net.freeze();
  const Tensor x = rand({2, 3, 8, 8}).eval();
  const std::vector<float> alone = serve(x).to_vector<float>(), again = serve(serve(x)).to_vector<float>();
  EXPECT_EQ(serve(serve(x).eval()).to_vector<float>(), again);

  const Tensor y = serve(x), doubled = y * 2;
  EXPECT_EQ(doubled.to_vector<float>()[7], alone[7] * 2);
  EXPECT_EQ(y.to_vector<float>(), alone) << "after it was a part";
  const Tensor first = serve(x), negative = -first;
  eval({first, negative});
  EXPECT_EQ(first.to_vector<float>(), alone) << "beside what is computed from it";
  EXPECT_EQ(negative.to_vector<float>()[7], -alone[7]);
  EXPECT_EQ((first + 0).to_vector<float>(), alone) << "evaluated, as an argument";

  EXPECT_EQ(serve(x + 0).to_vector<float>(), alone) << "of an input that is still to be computed";
  Tensor kept;
  {
    const Tensor copy = from_host(x.to_vector<float>().data(), x.shape(), f32).eval();
    kept = serve(copy);
  }
  EXPECT_EQ(kept.to_vector<float>(), alone) << "without the input's handle";
  const Tensor leaf = x.detach().requires_grad();
  EXPECT_EQ(grad(sum(serve(leaf)), {leaf})[0].shape(), x.shape());
  serve(x);  // never asked for
}

TEST_P(FrozenNetworks, AnswerOnceToManyThreads) {
  nn::Sequential net = network();
  net.eval();
  const Frozen serve = net.freeze();
  const Tensor x = rand({2, 3, 8, 8}).eval();
  const std::vector<float> expected = serve(x).to_vector<float>();
  for (int round = 0; round < 20; ++round) {
    const Tensor shared = serve(x);
    std::vector<std::thread> threads;
    std::atomic<int> right = 0;
    for (int t = 0; t < 4; ++t)
      threads.emplace_back([&, t] {
        right += shared.to_vector<float>() == expected &&
                 (t % 2 == 0 ? serve(x) : shared + 0).to_vector<float>() == expected;
      });
    for (std::thread& thread : threads) thread.join();
    ASSERT_EQ(right, 4);
  }
}

// The input's memory is given back when the result is there, by a function that calls the library.
TEST_P(FrozenNetworks, LetGoOfTheirInputs) {
  nn::Sequential net = network();
  net.eval();
  const Frozen serve = net.freeze();
  const Tensor x = rand({2, 3, 8, 8}).eval();
  const std::vector<float> expected = serve(x).to_vector<float>();
  for (const bool as_part : {false, true}) {
    std::vector<float> pixels = x.to_vector<float>();
    int given_back = 0;
    Tensor borrowed = borrow(pixels.data(), x.shape(), [&] { given_back += x.to_vector<float>() == pixels; });
    const Tensor y = serve(borrowed);
    borrowed = Tensor();
    EXPECT_EQ(given_back, 0) << "it is still needed";
    if (as_part) eval({y, y + 1});
    EXPECT_EQ(y.to_vector<float>(), expected);
    EXPECT_EQ(given_back, 1);
  }
}

TEST_P(FrozenNetworks, GiveTheirMemoryBack) {
  nn::Sequential net = network();
  net.eval();
  const Tensor x = rand({2, 3, 8, 8}).eval();
  net(x).eval();
  const std::int64_t before = memory::allocated();
  {
    const Frozen serve = net.freeze();
    for (int i = 0; i < 2; ++i) serve(x).eval();
    EXPECT_GT(memory::allocated(), before);
  }
  // The last weights are the module's own: what was derived from them stays with them.
  const std::int64_t own = net.state_dict().at("3.weight").bytes() + net.state_dict().at("5.weight").bytes();
  EXPECT_LE(memory::allocated(), before + 4 * own);
}

// Parameters that were frozen once are trained in their own memory afterwards, and frozen again.
TEST_P(FrozenNetworks, NoticeThatParametersWereTrained) {
  nn::Sequential net(nn::Conv2d(3, 8, 3, {.bias = false}), nn::ReLU(), nn::Flatten());
  const Tensor x = rand({2, 3, 6, 6}).eval();
  optim::SGD opt(net.parameters(), {.lr = 0.5});
  auto step = train_step(net, opt, [&](const Tensor& t) { return mean(net(t)); });
  std::vector<float> last;
  for (int round = 0; round < 3; ++round) {
    step(x);
    const std::vector<float> plain = net(x).to_vector<float>();
    EXPECT_NE(plain, last);
    const Frozen serve = net.freeze();
    for (int i = 0; i < 2; ++i) EXPECT_EQ(serve(x).to_vector<float>(), plain) << "round " << round;
    last = plain;
  }
}

INSTANTIATE_TEST_SUITE_P(Engines, FrozenNetworks, ::testing::ValuesIn(kEveryEngine), name_of);

}  // namespace
}  // namespace fusejit::testing
