// What a value holds once a step has written over it in place.
#include "scheduler/contents.h"

#include <gtest/gtest.h>

#include "fusejit/error.h"
#include "scheduler/make_plan.h"

namespace fusejit::scheduler {
namespace {

// The subtraction takes the place of the product that it reads.
Plan in_place() {
  const ir::Graph graph = ir::parse_graph(
      "graph @g(%x: f32[64,32], %w: f32[32,16], %v: f32[16,8]) {\n  %0 = matmul(%x, %w) : f32[64,16]\n"
      "  %1 = mean(%0) : f32[]\n  %2 = sub(%0, %1) : f32[64,16]\n  %3 = matmul(%2, %v) : f32[64,8]\n  return %3\n}\n");
  return make_plan(graph, {Target::parse("x86:avx2"), Rules::all, {}});
}

TEST(Contents, ChangeWithWhatIsWrittenInPlace) {
  const Plan plan = in_place();
  int changed = 0;
  Contents contents(plan);
  for (const PlanStep& step : plan.steps) {
    for (const auto& [value, label] : step.overwrites) {
      ++changed;
      EXPECT_EQ(contents[value], "%0 matmul");
      EXPECT_TRUE(label.ends_with(" sub")) << label;
      EXPECT_EQ(Contents(plan, step)[value], "%0 matmul") << "before the step";
    }
    contents.pass(step);
    for (const auto& [value, label] : step.overwrites) EXPECT_EQ(contents[value], label);
  }
  EXPECT_EQ(changed, 1);
  const PlanStep& last = plan.steps.back();
  EXPECT_TRUE(std::any_of(last.values.begin(), last.values.end(), [&](int v) {
    return Contents(plan, last)[v].ends_with(" sub");
  })) << "what the last product reads";
}

TEST(Contents, AreInThePlansText) {
  const Plan plan = in_place();
  const std::string text = print(plan);
  EXPECT_NE(text.find(" over "), std::string::npos);
  EXPECT_EQ(print(parse_plan(text)), text);
  // A step that updates a value and does not say so, or says it of another one.
  for (const bool other : {false, true}) {
    Plan wrong = parse_plan(text);
    for (PlanStep& step : wrong.steps) {
      if (step.overwrites.empty()) continue;
      if (other)
        step.overwrites[0].value = step.values[0] == step.overwrites[0].value ? step.values[1] : step.values[0];
      if (!other) step.overwrites.clear();
    }
    try {
      verify(wrong);
      ADD_FAILURE() << "it passes";
    } catch (const InternalError& error) {
      EXPECT_NE(std::string_view(error.what()).find("P8: step "), std::string_view::npos) << error.what();
    }
  }
}

}  // namespace
}  // namespace fusejit::scheduler
