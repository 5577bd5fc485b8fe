// What follows an anchor behind a permutation runs in its kernel, where lanes stay neighbours in memory, and sums over
// rows run there behind a reshape.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "scheduler/make_plan.h"

namespace fusejit::scheduler {
namespace {

// Without those that lay weights out.
int kernels_but_packing(const Plan& plan) {
  return static_cast<int>(std::count_if(plan.steps.begin(), plan.steps.end(),
                                        [](const PlanStep& step) { return !step.name.ends_with("_pack"); }));
}
Plan plan_of_text(const std::string& text, const char* target, std::vector<bool> donated = {}) {
  PlanOptions options;
  options.target = Target::parse(target), options.donated = std::move(donated);
  return make_plan(ir::parse_graph(text), options);
}

constexpr const char* kTurning[] = {"x86:v2", "x86:avx2", "x86:avx512", "cuda:sm_90"};

// The end of a block of ConvNeXt: a product on pixels, scaled, and added to the image that the block is given.
std::string scaled_residual(const char* layout) {
  return fmt::format(R"(graph @g(%x: f32[2,6,8,64], %w: f32[32,64], %b: f32[32], %s: f32[32], %z: f32[2,32,6,8]{0}) {{
  %0 = linear(%x, %w) : f32[2,6,8,32]
  %1 = add(%0, %b) : f32[2,6,8,32]
  %2 = mul(%s, %1) : f32[2,6,8,32]
  %3 = permute(%2) {{dims=[0,3,1,2]}} : f32[2,32,6,8]{0}
  %4 = add(%z, %3) : f32[2,32,6,8]{0}
  return %4
}})",
                     layout);
}

TEST(Turned, AProductOnPixelsEndsInTheImageItIsAddedTo) {
  for (const char* target : kTurning) {
    EXPECT_EQ(kernels_but_packing(plan_of_text(scaled_residual(":nhwc"), target)), 1) << target;
    EXPECT_EQ(kernels_but_packing(plan_of_text(scaled_residual(""), target)), 2) << target << ": lanes would lie apart";
  }
  const std::int64_t image = 2 * 32 * 6 * 8 * 4, x = 2 * image, w = 32 * 64 * 4;
  EXPECT_EQ(plan_of_text(scaled_residual(":nhwc"), "x86:avx512").ledger_bytes(), x + 3 * w + 2 * 32 * 4 + 2 * image)
      << "weights are packed";
}

// The image is not needed any more: its memory is that of the result.
TEST(Turned, TheImageIsOverwritten) {
  const Plan plan = plan_of_text(scaled_residual(":nhwc"), "x86:avx512", {false, false, false, false, true});
  EXPECT_TRUE(
      std::any_of(plan.steps.begin(), plan.steps.end(), [](const PlanStep& step) { return !step.overwrites.empty(); }));
}

TEST(Turned, AConvolutionEndsInRowsOfChannels) {
  const char* text = R"(graph @g(%x: f32[2,8,6,6]:nhwc, %w: f32[32,8,3,3], %z: f32[2,6,6,32]) {
  %0 = conv2d(%x, %w) {padding=[1,1,1,1]} : f32[2,32,6,6]:nhwc
  %1 = permute(%0) {dims=[0,2,3,1]} : f32[2,6,6,32]
  %2 = add(%1, %z) : f32[2,6,6,32]
  %3 = relu(%2) : f32[2,6,6,32]
  return %3, %2
})";
  for (const char* target : kTurning) EXPECT_EQ(kernels_but_packing(plan_of_text(text, target)), 1) << target;
  EXPECT_GT(kernels_but_packing(plan_of_text(text, "cuda:sm_90,cudnn=1")), 1) << "a call stores what it computes";
}

// Values of one kernel in two orders: each is read where it lies.
TEST(Turned, ThereAndBackIsOneKernel) {
  const char* text = R"(graph @g(%x: f32[2,8,6,6]:nhwc, %w: f32[32,8,3,3], %z: f32[2,6,6,32]) {
  %0 = conv2d(%x, %w) {padding=[1,1,1,1]} : f32[2,32,6,6]:nhwc
  %1 = permute(%0) {dims=[0,2,3,1]} : f32[2,6,6,32]
  %2 = add(%1, %z) : f32[2,6,6,32]
  %3 = permute(%2) {dims=[0,3,1,2]} : f32[2,32,6,6]:nhwc
  %4 = relu(%3) : f32[2,32,6,6]:nhwc
  return %2, %4
})";
  for (const char* target : kTurning) EXPECT_EQ(kernels_but_packing(plan_of_text(text, target)), 1) << target;
}

// The gradient of a bias of a product on pixels: a sum over all dims that the product has as one.
TEST(Turned, SumsOfABiasGoThroughAReshape) {
  const auto graph = [](const char* dims, const char* type) {
    return fmt::format(R"(graph @g(%x: f32[96,24], %w: f32[24,32], %z: f32[2,6,8,32]) {{
  %0 = matmul(%x, %w) : f32[96,32]
  %1 = reshape(%0) {{shape=[2,6,8,32]}} : f32[2,6,8,32]
  %2 = mul(%1, %z) : f32[2,6,8,32]
  %3 = sum(%2) {{dim=[{}]}} : {}
  return %2, %3
}})",
                       dims, type);
  };
  for (const char* target : kTurning) {
    EXPECT_EQ(kernels_but_packing(plan_of_text(graph("0,1,2", "f32[32]"), target)), 1) << target;
    EXPECT_EQ(kernels_but_packing(plan_of_text(graph("0,1", "f32[8,32]"), target)), 2)
        << target << ": a part of the rows";
    EXPECT_EQ(kernels_but_packing(plan_of_text(graph("3", "f32[2,6,8]"), target)), 2) << target << ": along lanes";
    const char* unfolded = R"(graph @g(%x: f32[1,8,8], %w: f32[1,8,32]) {
  %0 = matmul(%x, %w) : f32[1,8,32]
  %1 = reshape(%0) {shape=[1,8,4,8]} : f32[1,8,4,8]
  %2 = sum(%1) {dim=[1], keepdim=true} : f32[1,1,4,8]
  return %2
})";
    EXPECT_EQ(kernels_but_packing(plan_of_text(unfolded, target)), 2) << target << ": the lanes' dim is two in the sum";
  }
  EXPECT_EQ(kernels_but_packing(plan_of_text(graph("0,1,2", "f32[32]"), "cuda:sm_90,cudnn=1")), 1)
      << "products are no calls";
}

// Where all extents are alike, the shape says nothing of the order.
TEST(Turned, ASquareIsReadInItsOrder) {
  const auto graph = [](const char* second) {
    return fmt::format(R"(graph @g(%x: f32[8,4,8,8]:nhwc, %w: f32[8,4,3,3], %z: f32[8,8,8,8]) {{
  %0 = conv2d(%x, %w) {{padding=[1,1,1,1]}} : f32[8,8,8,8]:nhwc
  %1 = permute(%0) {{dims=[2,0,3,1]}} : f32[8,8,8,8]
  %2 = add(%1, %z) : f32[8,8,8,8]
  {}
  return %2, %3
}})",
                       second);
  };
  for (const char* target : kTurning) {
    EXPECT_EQ(kernels_but_packing(plan_of_text(graph("%3 = relu(%2) : f32[8,8,8,8]"), target)), 1) << target;
    EXPECT_EQ(kernels_but_packing(plan_of_text(graph("%3 = sum(%2) {dim=[0,1,2]} : f32[8]"), target)), 2)
        << target << ": sums are of the anchor's own dims";
  }
}

}  // namespace
}  // namespace fusejit::scheduler
