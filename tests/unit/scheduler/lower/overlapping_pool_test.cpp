// Gradients of max pools whose windows overlap: how much a kernel computes. Their results: tests/conformance.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <stdexcept>

#include "ir/kernel/cost/cost.h"
#include "ir/passes/grad.h"
#include "scheduler/make_plan.h"

namespace fusejit::scheduler {
namespace {

// The pooled value is an expression of 4 operations and a pixel has 2.25 windows of 9 taps over it.
constexpr const char* kStem = R"(graph @g(%x: f32[4,64,56,56]:nhwc, %s: f32[64], %b: f32[64]) {
  %0 = batch_norm_train(%x, %s, %b) : f32[4,64,56,56]:nhwc
  %1 = relu(%0) : f32[4,64,56,56]:nhwc
  %2 = max_pool2d(%1) {kernel_size=[3,3], stride=[2,2], padding=[1,1,1,1]} : f32[4,64,28,28]:nhwc
  return %2
})";
constexpr double kPixels = 4. * 64 * 56 * 56;

PlanStep gradient_step(const ir::Graph& graph, const char* target) {
  const Plan plan = make_plan(graph, {Target::parse(target), Rules::all, {}});
  for (const PlanStep& step : plan.steps) {
    for (const std::string& op : step.ops)
      if (op.ends_with(" max_pool2d_grad")) return step;
  }
  throw std::runtime_error("no kernel of the gradient");
}
double flop_a_pixel(const ir::Graph& graph, const char* target) { return gradient_step(graph, target).flop / kPixels; }

TEST(OverlappingPool, LooksThroughEachWindowOnce) {
  const ir::Graph with_sums = ir::differentiate(ir::parse_graph(kStem), {"x", "s", "b"});
  const ir::Graph alone = ir::parse_graph(R"(graph @g(%x: f32[4,64,56,56]:nhwc, %dy: f32[4,64,28,28]:nhwc) {
  %0 = max_pool2d_grad(%x, %dy) {kernel_size=[3,3], stride=[2,2], padding=[1,1,1,1]} : f32[4,64,56,56]:nhwc
  return %0
})");
  for (const char* target : {"x86:avx512", "x86:avx2", "x86:v2"}) {
    EXPECT_LT(flop_a_pixel(with_sums, target), 40) << target;
    EXPECT_LT(flop_a_pixel(alone, target), 16) << target;
  }
}

// A window inside of the image has no loops: of columns those at the edges have kernels' loops of their own, of rows,
// which tasks share, each is asked. Windows may leave at both ends.
TEST(Pool, OnlyWindowsAtTheEdgesHaveLoops) {
  const auto text = [](const char* attrs, int out) {
    const Plan plan =
        make_plan(ir::parse_graph(fmt::format("graph @g(%x: f32[4,64,56,56]:nhwc) {{\n  %0 = max_pool2d(%x) {{{0}}} : "
                                              "f32[4,64,{1},{1}]:nhwc\n  return %0\n}}",
                                              attrs, out)),
                  {Target::parse("x86:avx512,tasks=16"), Rules::all, {}});
    return ir::print(*plan.steps.back().kernel);
  };
  const std::string overlapping = text("kernel_size=[3,3], stride=[2,2], padding=[1,1,1,1]", 28);
  EXPECT_NE(overlapping.find("if %i1*14 + %i2*2 >= 1 {"), std::string::npos) << overlapping;
  EXPECT_NE(overlapping.find("%3 = for %i12 in 0..3 unroll reduce maximum : f32 {\n"
                             "                    %4 = for %i13 in 0..3 unroll reduce maximum"),
            std::string::npos)
      << overlapping;
  const std::string both_ends = text("kernel_size=[3,3], stride=[1,1], padding=[1,1,1,1]", 56);
  EXPECT_NE(both_ends.find(" in 1..55 {"), std::string::npos) << both_ends;
  EXPECT_NE(both_ends.find("if %i1*14 + %i2 >= 1 and %i1*14 + %i2 < 55 {"), std::string::npos) << both_ends;
  EXPECT_NE(both_ends.find("if %i1*14 + %i2 < 1 {"), std::string::npos) << both_ends;
  EXPECT_NE(both_ends.find("if %i1*14 + %i2 >= 1 and %i1*14 + %i2 >= 55 {"), std::string::npos) << both_ends;
  EXPECT_EQ(text("kernel_size=[5,5], stride=[1,1], padding=[2,2,2,2]", 56).find("if "), std::string::npos)
      << "25 taps are a loop";
}

// What several windows would each compute again is computed once, in the kernel of the convolution before it: that
// stores as many bytes. Not where somebody reads the convolution's result itself, or a statistic of it.
TEST(Pool, ReadsWhatAConvolutionsKernelHasFinished) {
  const auto pool = [](const char* between, const char* window, int out, const char* results) {
    const Plan plan = make_plan(
        ir::parse_graph(fmt::format("graph @g(%x: f32[2,16,24,24]:nhwc, %w: f32[32,16,1,1], %b: f32[32]) {{\n"
                                    "  %0 = conv2d(%x, %w) : f32[2,32,24,24]:nhwc\n  {0}\n"
                                    "  %p = max_pool2d(%2) {{{1}}} : f32[2,32,{2},{2}]:nhwc\n  return {3}\n}}",
                                    between, window, out, results)),
        {Target::parse("x86:avx512"), Rules::all, {}});
    return plan.steps.back().kernel->name;
  };
  const char* const relu = "%1 = mul(%0, 0.5) : f32[2,32,24,24]:nhwc %2 = relu(%1) : f32[2,32,24,24]:nhwc";
  const char* const normalised =
      "%1 = batch_norm_train(%0, %b, %b) : f32[2,32,24,24]:nhwc %2 = relu(%1) : f32[2,32,24,24]:nhwc";
  const char* const overlapping = "kernel_size=[3,3], stride=[2,2], padding=[1,1,1,1]";
  EXPECT_EQ(pool(relu, overlapping, 12, "%p"), "max_pool2d");
  EXPECT_EQ(pool(relu, "kernel_size=[2,2], stride=[2,2]", 12, "%p"), "mul_relu_max_pool2d");
  EXPECT_EQ(pool(relu, overlapping, 12, "%p, %0"), "mul_relu_max_pool2d");
  EXPECT_EQ(pool(normalised, overlapping, 12, "%p"), "bn_relu_max_pool2d");
}

// Images are what its tasks may take one by one, however few there are.
TEST(OverlappingPool, WithSumsIsATaskAnImage) {
  const ir::Graph graph = ir::differentiate(ir::parse_graph(kStem), {"x", "s", "b"});
  EXPECT_EQ(ir::cost(*gradient_step(graph, "x86:avx512").kernel).tasks[0], 4);
}

// Devices keep no rows of maxima: the forward kernel stores which tap of each window was its maximum, a byte, and the
// gradient reads that.
TEST(OverlappingPool, OnDevicesTheForwardKernelStoresTaps) {
  const ir::Graph graph = ir::differentiate(ir::parse_graph(kStem), {"x", "s", "b"});
  const Plan plan = make_plan(graph, {Target::parse("cuda:sm_90"), Rules::all, {}});
  int forward = 0, gradient = 0;
  for (const PlanStep& step : plan.steps) {
    const auto does = [&](const char* op) {
      return std::any_of(step.ops.begin(), step.ops.end(), [&](const std::string& o) { return o.ends_with(op); });
    };
    forward += does(" max_pool2d") && does(" max_pool2d_tap");
    if (!does(" max_pool2d_tap_grad")) continue;
    ++gradient;
    EXPECT_LT(step.flop / kPixels, 40);
  }
  EXPECT_EQ(forward, 1);
  EXPECT_EQ(gradient, 1);
}

}  // namespace
}  // namespace fusejit::scheduler
