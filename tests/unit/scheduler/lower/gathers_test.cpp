// What gathers read is computed where they read it, unless several would each compute it at a place of its own.
#include <gtest/gtest.h>

#include "scheduler/make_plan.h"

namespace fusejit::scheduler {
namespace {

std::size_t kernels_of(const char* graph) {
  return make_plan(ir::parse_graph(graph), {Target::parse("x86:avx2"), Rules::all, {}, {}}).steps.size();
}

// The class that a loss picks is the only one of which the logarithm is needed.
TEST(Gathers, ComputeWhatOneReads) {
  EXPECT_EQ(kernels_of(R"(graph @f(%x: f32[8,100], %i: i64[8,1]) {
  %0 = log(%x) : f32[8,100]
  %1 = gather(%0, %i) {dim=1} : f32[8,1]
  return %1
})"),
            1u);
}

// Sums over all places of an index, and elements at places that are themselves data: a kernel of their own, in front of
// the two that read them.
TEST(Gathers, ReadWhatIsStoredWhereItIsMuchWork) {
  EXPECT_EQ(kernels_of(R"(graph @f(%x: f32[8,50], %i: i64[8,50], %j: i64[8,40], %k: i64[8,30]) {
  %0 = gather_grad(%x, %i) {dim=1, shape=[8,50]} : f32[8,50]
  %1 = gather(%0, %j) {dim=1} : f32[8,40]
  %2 = gather(%0, %k) {dim=1} : f32[8,30]
  return %1, %2
})"),
            3u);
  EXPECT_EQ(kernels_of(R"(graph @f(%x: f32[8,50], %i: i64[8,50], %j: i64[4,40], %k: i64[4,30]) {
  %0 = gather(%x, %i) {dim=1} : f32[8,50]
  %1 = reshape(%0) {shape=[4,100]} : f32[4,100]
  %2 = gather(%1, %j) {dim=1} : f32[4,40]
  %3 = gather(%1, %k) {dim=1} : f32[4,30]
  return %2, %3
})"),
            3u);
}

// An index that is a sum over places is computed once, not again for each of its readers.
TEST(Gathers, SumsOverPlacesAreComputedOnce) {
  const ir::Graph graph = ir::parse_graph(R"(graph @f(%x: i64[8,50], %i: i64[8,50], %y: f32[8,50], %z: f32[8,50]) {
  %0 = gather_grad(%x, %i) {dim=1, shape=[8,40]} : i64[8,40]
  %1 = gather(%y, %0) {dim=1} : f32[8,40]
  %2 = slice(%0) {starts=[0,0], stops=[8,20], steps=[1,1]} : i64[8,20]
  %3 = gather(%z, %2) {dim=1} : f32[8,20]
  return %1, %3
})");
  int kernels = 0;
  for (const PlanStep& step : make_plan(graph, {Target::parse("x86:avx2"), Rules::all, {}, {}}).steps)
    kernels += step.name.find("gather_grad") != std::string::npos;
  EXPECT_EQ(kernels, 1);
}

}  // namespace
}  // namespace fusejit::scheduler
