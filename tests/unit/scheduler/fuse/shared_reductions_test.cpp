// Reductions of one value share a kernel, whether it stands in memory or is a concatenation that is computed where it
// is read: batch norm's statistics in front of a dense layer.
#include <gtest/gtest.h>

#include "scheduler/make_plan.h"

namespace fusejit::scheduler {
namespace {

std::size_t kernels_of(const char* body) {
  const std::string text = std::string("graph @f(%a: f32[8,16,14,14], %b: f32[8,32,14,14], %y: f32[8,48,14,14]) {\n") +
                           "  %0 = concat(%a, %b) {dim=1} : f32[8,48,14,14]\n" + body + "\n}\n";
  return make_plan(ir::parse_graph(text), {Target::parse("x86:avx2"), Rules::all, {}, {}}).steps.size();
}

TEST(SharedReductions, OfAConcatenation) {
  EXPECT_EQ(kernels_of(R"(  %1 = mean(%0) {dim=[0,2,3]} : f32[48]
  %2 = var(%0) {dim=[0,2,3], correction=0} : f32[48]
  %3 = var(%0) {dim=[0,2,3], correction=1} : f32[48]
  return %1, %2, %3)"),
            1u);
}

TEST(SharedReductions, OfWhatIsComputedFromAConcatenation) {
  EXPECT_EQ(kernels_of(R"(  %1 = mul(%0, %y) : f32[8,48,14,14]
  %2 = sum(%0) {dim=[0,2,3]} : f32[48]
  %3 = sum(%1) {dim=[0,2,3]} : f32[48]
  return %2, %3)"),
            1u);
}

// A running variance, unbiased, is recorded long after the batch's: the kernel that has its moments takes it, and not
// the latest that reads the same elements.
TEST(SharedReductions, ASecondVarianceGoesWhereTheFirstIs) {
  const ir::Graph graph = ir::parse_graph(R"(graph @f(%x: f32[8,48,14,14]:nhwc, %m: f32[48]) {
  %0 = mean(%x) {dim=[0,2,3]} : f32[48]
  %1 = var(%x) {dim=[0,2,3], correction=0} : f32[48]
  %2 = reshape(%0) {shape=[1,48,1,1]} : f32[1,48,1,1]
  %3 = sub(%x, %2) : f32[8,48,14,14]:nhwc
  %4 = var(%x) {dim=[0,2,3], correction=1} : f32[48]
  %5 = add(%4, %m) : f32[48]
  return %1, %3, %5
})");
  for (const char* target : {"x86:avx2", "cuda:sm_90"}) {
    const Plan plan = make_plan(graph, {Target::parse(target), Rules::all, {}, {}});
    ASSERT_EQ(plan.steps.size(), 2u) << target;
    EXPECT_EQ(plan.steps[0].ops.size(), 4u) << target;
    EXPECT_EQ(plan.steps[1].ops, std::vector<std::string>{"%3 sub"}) << target;
  }
}

// The same elements, but sums over others; and views of one concatenation that read others.
TEST(SharedReductions, NotOverOtherDims) {
  EXPECT_EQ(kernels_of(R"(  %1 = sum(%0) {dim=[0,2,3]} : f32[48]
  %2 = sum(%0) {dim=[1,2,3]} : f32[8]
  return %1, %2)"),
            2u);
  EXPECT_EQ(kernels_of(R"(  %1 = permute(%0) {dims=[1,0,2,3]} : f32[48,8,14,14]
  %2 = sum(%0) {dim=[0,2,3]} : f32[48]
  %3 = sum(%1) {dim=[0,2,3]} : f32[8]
  return %2, %3)"),
            2u);
}

}  // namespace
}  // namespace fusejit::scheduler
