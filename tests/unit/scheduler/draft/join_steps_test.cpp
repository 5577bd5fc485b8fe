// Rule R4: what needs the finished reduction of its row or column is in the reduction's kernel.
#include "scheduler/draft/join_steps.h"

#include <gtest/gtest.h>

#include "ir/passes/grad.h"
#include "scheduler/make_plan.h"

namespace fusejit::scheduler {
namespace {

Plan plan_of(const std::string& params, const std::string& body, const char* target, const Rules& rules = Rules::all) {
  const ir::Graph graph = ir::parse_graph("graph @g(" + params + ") {\n" + body + "  return %y\n}");
  return make_plan(graph, {Target::parse(target), rules, {}});
}
Plan gradient_of(const std::string& params, const std::string& body, const char* target) {
  const ir::Graph graph = ir::parse_graph("graph @g(" + params + ") {\n" + body + "  return %y\n}");
  return make_plan(ir::differentiate(graph, {"x"}), {Target::parse(target), Rules::all, {}});
}

const std::string kNorm = "  %y = layer_norm(%x, 1, 0) {normalized_shape=[256]} : f32[512,256]\n";
const std::string kRows = "%x: f32[512,256]";
const std::string kSoftmax = "  %y = softmax(%x) {dim=1} : f32[512,256]\n";
constexpr std::int64_t kBytes = 512 * 256 * 4;
const char* const kTargets[] = {"x86:avx512", "x86:avx2", "x86:v2", "cuda:sm_90"};

// One read and one write; of the gradient, with what it is given, two and two.
TEST(JoinSteps, NormsOfRowsAndTheirGradientsAreOneKernel) {
  for (const char* target : kTargets) {
    for (const std::string& body : {kNorm, kSoftmax}) {
      const Plan plan = plan_of(kRows, body, target);
      EXPECT_EQ(plan.steps.size(), 1u) << target << print_outline(plan);
      EXPECT_EQ(plan.ledger_bytes(), 2 * kBytes) << target << body;
      EXPECT_EQ(plan.arena_bytes, 0) << target << body;
      EXPECT_TRUE(plan.refusals.empty()) << target << body;
      const Plan gradient = gradient_of(kRows, body, target);
      EXPECT_EQ(gradient.steps.size(), 1u) << target << print_outline(gradient);
      // The softmax is stored and read back, from a cache, but the ledger knows of no caches.
      EXPECT_EQ(gradient.ledger_bytes(), (body == kNorm ? 4 : 5) * kBytes) << target << body;
      const Plan apart = plan_of(kRows, body, target, parse_rules("-R4"));
      EXPECT_GT(apart.steps.size(), 1u) << target;
      EXPECT_GE(apart.ledger_bytes(), 3 * kBytes) << target << body;
    }
  }
}

// Over channels lanes run along pixels: a round is a block of them. Sixteen images are many tasks.
TEST(JoinSteps, ColumnsAreRoundsOfBlocks) {
  for (const char* target : {"x86:avx512", "x86:avx2"}) {
    const Plan plan = plan_of("%x: f32[16,8,32,32]", "  %y = softmax(%x) {dim=1} : f32[16,8,32,32]\n", target);
    ASSERT_EQ(plan.steps.size(), 1u) << print_outline(plan);
    EXPECT_EQ(plan.ledger_bytes(), 2 * 16 * 8 * 32 * 32 * 4);
    EXPECT_EQ(plan.steps[0].schedules.size(), 3u);
    const auto& outermost = std::get<ir::ForStmt>(plan.steps[0].kernel->phases[0].body.statements[0].node);
    EXPECT_EQ(outermost.high[0], ir::Index(16)) << target;
    EXPECT_EQ(outermost.binding, ir::Binding::threads) << target;
  }
}

// Groups of channels are rounds where tasks share them out alike: two groups are sixteen channels.
TEST(JoinSteps, GroupsAndImagesOfANormAreRounds) {
  const std::string x = "%x: f32[16,64,28,28], %s: f32[64], %t: f32[64]";
  constexpr std::int64_t kImage = 16 * 64 * 28 * 28 * 4;
  for (const char* target : {"x86:avx512", "x86:avx2"}) {
    const Plan group = plan_of(x, "  %y = group_norm(%x, %s, %t) {num_groups=8} : f32[16,64,28,28]\n", target);
    EXPECT_EQ(group.steps.size(), 1u) << print_outline(group);
    EXPECT_EQ(group.ledger_bytes(), 2 * kImage + 2 * 64 * 4);
    const Plan instance = plan_of(x, "  %y = instance_norm(%x, %s, %t) : f32[16,64,28,28]\n", target);
    EXPECT_EQ(instance.steps.size(), 1u) << print_outline(instance);
  }
}

// The mean is a result too: stored, and not read back.
TEST(JoinSteps, WhatOthersReadIsStored) {
  const ir::Graph graph = ir::parse_graph(
      "graph @g(%x: f32[512,256]) {\n  %m = mean(%x) {dim=[1], keepdim=true} : f32[512,1]\n"
      "  %y = sub(%x, %m) : f32[512,256]\n  return %m, %y\n}");
  for (const char* target : kTargets) {
    const Plan plan = make_plan(graph, {Target::parse(target), Rules::all, {}});
    ASSERT_EQ(plan.steps.size(), 1u) << target << print_outline(plan);
    EXPECT_EQ(plan.ledger_bytes(), 2 * kBytes + 512 * 4) << target;
  }
}

// A normalised row over its own place: what the step leaves there is its last value.
TEST(JoinSteps, RowsAreOverwrittenInPlace) {
  const ir::Graph graph = ir::parse_graph(
      "graph @g(%x: f32[512,256]) {\n  %m = mean(%x) {dim=[1], keepdim=true} : f32[512,1]\n"
      "  %y = sub(%x, %m) : f32[512,256]\n  %n = amax(%y) {dim=[1], keepdim=true} : f32[512,1]\n"
      "  %z = sub(%y, %n) : f32[512,256]\n  return %z\n}");
  PlanOptions options{Target::parse("x86:avx512"), Rules::all, {true}};
  const Plan plan = make_plan(graph, options);
  ASSERT_EQ(plan.steps.size(), 1u) << print_outline(plan);
  ASSERT_EQ(plan.steps[0].overwrites.size(), 1u);
  EXPECT_EQ(plan.steps[0].overwrites[0].label, "%3 sub");
}

// A row that leaves the cache is read again from memory: nothing is gained.
TEST(JoinSteps, RowsThatLeaveTheCacheStayTwo) {
  const std::string body = "  %y = layer_norm(%x, 1, 0) {normalized_shape=[65536]} : f32[128,65536]\n";
  EXPECT_EQ(plan_of("%x: f32[128,65536]", body, "x86:avx512,l2=2m").steps.size(), 1u);
  EXPECT_EQ(plan_of("%x: f32[128,65536]", body, "x86:avx512,l2=512k").steps.size(), 2u);
  EXPECT_EQ(plan_of("%x: f32[128,65536]", body, "cuda:sm_90").steps.size(), 2u);
}

// Statistics of a batch are joined from the parts of all tasks before anybody can use them.
TEST(JoinSteps, SumsInPartsStayApart) {
  const Plan plan = plan_of("%x: f32[64,16,14,14]:nhwc, %s: f32[16], %t: f32[16]",
                            "  %y = batch_norm_train(%x, %s, %t) : f32[64,16,14,14]:nhwc\n", "x86:avx512");
  EXPECT_EQ(plan.steps.size(), 2u) << print_outline(plan);
}

}  // namespace
}  // namespace fusejit::scheduler
