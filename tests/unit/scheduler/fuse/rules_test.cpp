// Rules that are switched off: their texts, what plans move without them.
#include "scheduler/fuse/rules.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "frontend/models/named.h"
#include "fusejit/error.h"
#include "scheduler/make_plan.h"

namespace fusejit::scheduler {
namespace {

using ::testing::HasSubstr;

TEST(Rules, AreReadAndWritten) {
  for (const char* text : {"all", "none", "inductor", "-R1", "-R5,-R9", "-R2,-R3,-R6", "-R4,-R7"})
    EXPECT_EQ(name(parse_rules(text)), text);
  EXPECT_EQ(name(parse_rules("-R9,-R5,-R9")), "-R5,-R9");
  EXPECT_EQ(name(parse_rules("-R8,-R7,-R6,-R5")), "inductor");
  EXPECT_FALSE(Rules::none.has(Rule::chain));
  EXPECT_TRUE(Rules::all.has(Rule::shared) && parse_rules("-R5").has(Rule::shared));
  for (const char* text : {"", "some", "R5", "-R0", "-R5,", ",-R5", "-R5 -R6", "-r5", "all,-R5"})
    EXPECT_THROW(parse_rules(text), UserError) << text;
}

Plan plan_with(const char* source, const char* target, const std::string& rules) {
  const models::ModelGraph model = models::model_graph(source);
  return make_plan(model.graph,
                   {Target::parse(target), parse_rules(rules), {model.donated.begin(), model.donated.end()}});
}

// Every rule moves less on one of these, none moves more, and none at all is the worst.
TEST(Rules, MoveLessEach) {
  for (const char* target : {"x86:avx512", "cuda:sm_90"}) {
    std::map<std::string, bool> helps;
    for (const char* source : {"convnet@16:train", "resnet18@4x3x64x64:train", "mobilenet_v2@4x3x64x64:train"}) {
      const std::int64_t all = plan_with(source, target, "all").ledger_bytes();
      const std::int64_t none = plan_with(source, target, "none").ledger_bytes();
      for (const char* rules : {"-R1", "-R2", "-R3", "-R4", "-R5", "-R6", "-R7", "-R8", "-R9", "inductor"}) {
        const Plan plan = plan_with(source, target, rules);
        EXPECT_EQ(name(plan.rules), rules);
        EXPECT_GE(plan.ledger_bytes(), all * 99 / 100) << source << " on " << target << " " << rules;
        EXPECT_LT(plan.ledger_bytes(), none) << source << " on " << target << " " << rules;
        helps[rules] = helps[rules] || plan.ledger_bytes() > all;
      }
    }
    // On a device no convolution stores what it computes of its operand yet.
    for (const auto& [rules, does] : helps)
      EXPECT_EQ(does, rules != "-R7" || std::string(target) != "cuda:sm_90") << rules << " on " << target;
  }
}

// Without rules an op of the recorded graph is a kernel of its own, and no more: what it is made of is fused.
TEST(Rules, NoneAreAKernelForEachOp) {
  const ir::Graph graph = ir::parse_graph(
      "graph @g(%x: f32[8,32]) {\n  %0 = softmax(%x) {dim=1} : f32[8,32]\n  %1 = gelu(%0) : f32[8,32]\n"
      "  return %1\n}\n");
  EXPECT_EQ(make_plan(graph, {Target::parse("x86:avx512"), Rules::none, {}}).steps.size(), 4u);  // softmax: three
}

TEST(Rules, ThatAreOffAreSaid) {
  const Plan plan = plan_with("convnet@4:train", "x86:avx2", "-R5");
  const auto off = std::count_if(plan.refusals.begin(), plan.refusals.end(),
                                 [](const Refusal& refusal) { return refusal.code == RefusalCode::rule_off; });
  EXPECT_GT(off, 4);
  EXPECT_THAT(print(plan), HasSubstr("rule R5 is switched off"));
  EXPECT_EQ(print(parse_plan(print(plan))), print(plan));
}

}  // namespace
}  // namespace fusejit::scheduler
