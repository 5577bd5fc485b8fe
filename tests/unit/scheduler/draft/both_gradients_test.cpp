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

// What both read is stored for others as well. The input's gradient would store it in its copy (R7), which saves
// reading it back once; beside the other gradient it is read once too, and so is the image, where both need that.
TEST(BothGradients, AreOneWhereThatSavesMoreThanAStoreInACopy) {
  const auto graph = [](bool reads_image) {
    return ir::parse_graph(fmt::format(
        R"(graph @both(%u: f32[8,32,24,24]:nhwc, %v: f32[8,32,24,24]:nhwc, %x: f32[8,16,24,24]:nhwc, %w: f32[32,16,1,1]) {{
  %g = mul(%u, %v) : f32[8,32,24,24]:nhwc
  %d = conv2d_input_grad(%g, %w) {{input_size=[24,24]}} : f32[8,16,24,24]:nhwc
  %m = mul(%d, {}) : f32[8,16,24,24]:nhwc
  %k = conv2d_weight_grad(%x, %g) {{kernel_size=[1,1]}} : f32[32,16,1,1]
  return %g, %m, %k
}})",
        reads_image ? "%x" : "2"));
  };
  EXPECT_EQ(both_in(plan_of(graph(true))), 1) << print_outline(plan_of(graph(true)));
  const Plan copies = plan_of(graph(false));
  EXPECT_EQ(both_in(copies), 0) << print_outline(copies);
  EXPECT_EQ(copies.ledger_bytes(), plan_of(graph(false), kTarget, "-R7").ledger_bytes());
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

// Depthwise, with and without a stride, whose four phases become one as well: what each reads is read once.
TEST(BothGradients, DepthwiseAreOneKernel) {
  const auto graph = [](int stride) {
    const int out = 24 / stride;
    const ir::Graph forward = ir::parse_graph(fmt::format(
        R"(graph @step(%x: f32[8,4,24,24]:nhwc, %u: f32[48,4,1,1], %w: f32[48,1,3,3], %a: f32[48], %b: f32[48]) {{
  %0 = conv2d(%x, %u) : f32[8,48,24,24]:nhwc
  %1 = batch_norm_train(%0, %a, %b) : f32[8,48,24,24]:nhwc
  %2 = relu(%1) : f32[8,48,24,24]:nhwc
  %3 = conv2d(%2, %w) {{padding=[1,1,1,1], stride=[{0},{0}], groups=48}} : f32[8,48,{1},{1}]:nhwc
  %4 = square(%3) : f32[8,48,{1},{1}]:nhwc
  return %4
}})",
        stride, out));
    return ir::differentiate(forward, {"x", "u", "w", "a", "b"});
  };
  constexpr std::int64_t kImage = 4 * 8 * 48 * 24 * 24;
  for (const int stride : {1, 2}) {
    const Plan together = plan_of(graph(stride)), apart = plan_of(graph(stride), kTarget, "-R9");
    EXPECT_GE(both_in(together), 1) << print_outline(together);
    // The image, and the gradient by the result; of a stride of two three times the latter more.
    const std::int64_t saved = stride == 1 ? 2 * kImage : kImage + kImage;
    EXPECT_LE(together.ledger_bytes(), apart.ledger_bytes() - saved * 3 / 4) << stride;
    EXPECT_LE(together.steps.size(), apart.steps.size()) << stride;
    for (const PlanStep& step : together.steps)
      EXPECT_LE(step.kernel->phases.size(), 3u) << step.name;  // both at once, sums of both
  }
}

// Eight images are tasks for eight processors, not for nine; of twelve some would have two and others one.
TEST(BothGradients, StayTwoWhereImagesAreNoTasks) {
  EXPECT_EQ(both_in(plan_of(step(), "x86:avx512,l1=4k,l2=64k,l3=1m,fma=2,tasks=72")), 0);
  EXPECT_EQ(tasks_of_both_gradients(16, Target::parse(kTarget)), 8);
  EXPECT_EQ(tasks_of_both_gradients(24, Target::parse(kTarget)), 8);
  EXPECT_EQ(tasks_of_both_gradients(12, Target::parse(kTarget)), 0);
  EXPECT_EQ(tasks_of_both_gradients(256, Target::parse("x86:avx512,tasks=512")), 64);
}

// A row of one is more than L2 has room for: blocks of rows, which nothing cuts, would be none.
TEST(BothGradients, StayTwoWhereRowsAreLong) {
  const ir::Graph forward = ir::parse_graph(
      R"(graph @g(%x: f32[8,32,1,90000], %w: f32[128,32,1,1], %b: f32[128], %v: f32[32,128,1,1]) {
  %0 = conv2d(%x, %w) : f32[8,128,1,90000]
  %1 = bias_add(%0, %b) : f32[8,128,1,90000]
  %2 = relu(%1) : f32[8,128,1,90000]
  %3 = conv2d(%2, %v) : f32[8,32,1,90000]
  return %3
})");
  const ir::Graph graph = ir::differentiate(forward, {"x", "w", "b", "v"});
  for (const char* target : {"x86:avx512", "x86:avx2"}) {
    const Plan plan = plan_of(graph, target), apart = plan_of(graph, target, "-R9");
    EXPECT_EQ(both_in(plan), 0) << target;
    ASSERT_EQ(plan.steps.size(), apart.steps.size()) << target;
    for (std::size_t s = 0; s < plan.steps.size(); ++s)  // nor are their loops those of two that go together
      EXPECT_EQ(ir::print(*plan.steps[s].kernel), ir::print(*apart.steps[s].kernel)) << target;
  }
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
