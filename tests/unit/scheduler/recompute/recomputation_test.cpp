// What a layer that saves only its convolution's input computes again, and what not.
#include <gtest/gtest.h>

#include "frontend/models/named.h"
#include "ir/passes/passes.h"
#include "ir/passes/recompute.h"
#include "scheduler/make_plan.h"
#include "scheduler/recompute/idle.h"

namespace fusejit::scheduler {
namespace {

ir::Graph step(const char* target) {
  return ir::optimise(models::model_graph("convnet_save_input@8:train").graph, Target::parse(target));
}

// The second convolution computes its input from the first one's result, which the backward pass reads for that: only
// the second is computed again. Where a library runs convolutions the input is stored, and either is.
TEST(Recomputation, WhatLivesAnywayIsNotComputedAgain) {
  for (const char* target : {"x86:avx2", "x86:avx512", "x86:avx512,winograd=1", "cuda:sm_90"}) {
    const ir::Graph graph = step(target), less = without_idle_recomputation(graph, Target::parse(target));
    EXPECT_EQ(ir::recomputed_anchors(graph).size(), 2U) << target;
    EXPECT_EQ(ir::recomputed_anchors(less).size(), 1U) << target;
    // Nor is what was computed of it, such as its mean.
    EXPECT_LT(less.value_count() + 2, graph.value_count()) << target;
  }
  const ir::Graph graph = step("cuda:sm_90,cudnn=1");
  EXPECT_TRUE(without_idle_recomputation(graph, Target::parse("cuda:sm_90,cudnn=1")).is(graph));
}

TEST(Recomputation, NeverTakesMoreMemory) {
  const auto arena = [](const char* source) {
    const models::ModelGraph model = models::model_graph(source);
    const std::vector<bool> donated(model.donated.begin(), model.donated.end());
    return make_plan(model.graph, {Target::parse("x86:avx512"), Rules::all, donated}).arena_bytes;
  };
  EXPECT_LE(arena("convnet_save_input@64:train"), arena("convnet@64:train"));
}

}  // namespace
}  // namespace fusejit::scheduler
