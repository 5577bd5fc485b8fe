// R9 for convolutions: both gradients of one in one kernel, where they share much of what they read.
#include "scheduler/draft/both_gradients.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "ir/passes/grad.h"
#include "scheduler/choose/choose.h"
#include "scheduler/make_plan.h"

namespace fusejit::scheduler {
namespace {

struct Layer {
  std::string dtype = "f32";
  int channels = 16, outputs = 32, side = 24, taps = 1, stride = 1;
};

// conv - batch norm, with all gradients: the gradient of what the convolution gives is computed from two tensors.
ir::Graph step(const Layer& l = {}) {
  const int out = (l.side - 1) / l.stride + 1, pad = l.taps / 2;
  const std::string x = fmt::format("{}[8,{},{},{}]:nhwc", l.dtype, l.channels, l.side, l.side),
                    y = fmt::format("{}[8,{},{},{}]:nhwc", l.dtype, l.outputs, out, out);
  const ir::Graph graph = ir::parse_graph(fmt::format(
      R"(graph @step(%x: {0}, %w: {2}[{4},{3},{5},{5}], %a: {2}[{4}], %b: {2}[{4}]) {{
  %c = conv2d(%x, %w) {{padding=[{6},{6},{6},{6}], stride=[{7},{7}]}} : {1}
  %n = batch_norm_train(%c, %a, %b) : {1}
  %r = relu(%n) : {1}
  return %r
}})",
      x, y, l.dtype, l.channels, l.outputs, l.taps, pad, l.stride));
  return ir::differentiate(graph, {"x", "w", "a", "b"});
}
constexpr const char* kTarget = "x86:avx512,l1=4k,l2=64k,l3=1m,fma=2";

Plan plan_of(const ir::Graph& graph, const char* target = kTarget, const char* rules = "all") {
  return make_plan(graph, {Target::parse(target), parse_rules(rules), {}});
}
// Steps that compute both gradients.
int both_in(const Plan& plan) {
  return static_cast<int>(std::count_if(plan.steps.begin(), plan.steps.end(), [](const PlanStep& step) {
    const auto has = [&](const char* op) {
      return std::any_of(step.ops.begin(), step.ops.end(), [&](const std::string& one) { return one.ends_with(op); });
    };
    return has(" conv2d_input_grad") && has(" conv2d_weight_grad");
  }));
}

TEST(BothGradients, AreOneKernelThatReadsTheirOperandsOnce) {
  for (const char* target : {kTarget, "x86:avx2,l1=4k,l2=64k,l3=1m", "x86:v2,l1=4k,l2=64k,l3=1m"}) {
    const Plan together = plan_of(step(), target), apart = plan_of(step(), target, "-R9");
    EXPECT_EQ(both_in(together), 1) << target << print_outline(together);
    EXPECT_EQ(both_in(apart), 0) << target;
    EXPECT_LT(together.steps.size(), apart.steps.size()) << target;
    // What the gradient is computed from: that of the norm's result, and what the convolution gave. Sums are in as many
    // parts, or in a few more.
    constexpr std::int64_t kTensor = 4 * 8 * 32 * 24 * 24, kWeights = 4 * 16 * 32;
    EXPECT_LE(together.ledger_bytes(), apart.ledger_bytes() - 2 * kTensor + 32 * kWeights) << target;
  }
}

// A row of both after the other: an image is a task, which has all weights' sums.
TEST(BothGradients, AStepHasTheSchedulesOfBoth) {
  const Plan plan = plan_of(step());
  const auto joined =
      std::find_if(plan.steps.begin(), plan.steps.end(), [](const PlanStep& one) { return one.schedules.size() == 2; });
  ASSERT_NE(joined, plan.steps.end());
  EXPECT_EQ(
      print(joined->schedules[0].schedule),
      "schedule { vector k 16 x 1 tile q 8 unroll c 4 task n, p outer k inner q, c panel a task pack b 16 fetch p "
      "1 }");
  EXPECT_EQ(
      print(joined->schedules[1].schedule),
      "schedule { vector k 16 x 2 tile c 8 task n, k outer p/1, c inner p, q panel a p tiles, b p combine c fetch p "
      "1 }");
  const auto& tasks = std::get<ir::ForStmt>(joined->kernel->phases[0].body.statements[0].node);
  EXPECT_EQ(tasks.binding, ir::Binding::threads);
  EXPECT_EQ(tasks.high[0], ir::Index(8));
}

TEST(BothGradients, StayTwoWhereRulesSaySo) {
  for (const char* rules : {"-R9", "-R5", "inductor", "none"})
    EXPECT_EQ(both_in(plan_of(step(), kTarget, rules)), 0) << rules;
}

// A row of what both read is two of the image, one of which is zeros.
TEST(BothGradients, OfAStrideAreOneToo) {
  EXPECT_EQ(both_in(plan_of(step({.channels = 8, .outputs = 64, .side = 48, .stride = 2}))), 1);
}

TEST(BothGradients, StayTwoWhereRowsDiffer) {
  EXPECT_EQ(both_in(plan_of(step({.taps = 3}))), 0);
  EXPECT_EQ(both_in(plan_of(step({.dtype = "bf16"}))), 0);
  EXPECT_EQ(both_in(plan_of(step(), "cuda:sm_90")), 0);
}

// Eight images are tasks for eight processors, not for nine; seventeen have no even parts.
TEST(BothGradients, StayTwoWhereImagesAreNoTasks) {
  EXPECT_EQ(both_in(plan_of(step(), "x86:avx512,l1=4k,l2=64k,l3=1m,fma=2,tasks=72")), 0);
  EXPECT_EQ(tasks_of_both_gradients(16, Target::parse(kTarget)), 16);
  EXPECT_EQ(tasks_of_both_gradients(250, Target::parse(kTarget)), 10);
  EXPECT_EQ(tasks_of_both_gradients(17, Target::parse(kTarget)), 0);
  EXPECT_EQ(tasks_of_both_gradients(256, Target::parse("x86:avx512,tasks=512")), 64);
}

TEST(BothGradients, StayTwoWhereLittleIsSaved) {
  EXPECT_EQ(both_in(plan_of(step(), "x86:avx512,l1=4k,l2=1m,l3=1m,fma=2")), 0);  // L2 has it all
  EXPECT_EQ(both_in(plan_of(step({.channels = 32, .outputs = 64}))), 0);         // weights of a quarter of L2
  // A tenth of all bytes: the image is read by one of them, and the other writes as much.
  EXPECT_EQ(both_in(plan_of(step({.channels = 64, .outputs = 8, .side = 40}))), 0);
  EXPECT_EQ(both_in(plan_of(step({.channels = 8, .outputs = 64, .side = 40}))), 1);
}

}  // namespace
}  // namespace fusejit::scheduler
