// Frozen networks on every engine: what depends on their parameters alone, packed weights included, is computed once,
// changes no bit, and goes when they go.
#include <gtest/gtest.h>

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
