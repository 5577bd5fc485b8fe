// A step that a library does is billed with what its call moves: its operands and its results, each once and whole,
// whatever the kernel that says what it means reads of them.
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "frontend/models/named.h"
#include "runtime/cudnn/step.h"
#include "scheduler/make_plan.h"

namespace fusejit::scheduler {
namespace {

int expect_billed(const Plan& plan) {
  int calls = 0;
  for (const PlanStep& step : plan.steps) {
    if (!step.library) continue;
    const std::vector<int>& values = step.library->values;
    const auto results = values.end() - static_cast<std::ptrdiff_t>(step.library->graph.results().size());
    const auto sum = [&](const std::set<int>& of) {
      std::int64_t bytes = 0;
      for (const int v : of) bytes += plan.values[static_cast<std::size_t>(v)].bytes;
      return bytes;
    };
    EXPECT_EQ(step.read_bytes, sum({values.begin(), results})) << step.name;
    EXPECT_EQ(step.written_bytes, sum({results, values.end()})) << step.name;
    ++calls;
  }
  return calls;
}

Plan plan_of(const char* graph, const char* target, Rules rules = Rules::all) {
  return make_plan(ir::parse_graph(graph), {Target::parse(target), rules, {}, runtime::cudnn::supports_step});
}

constexpr const char* kLibraryGraph = R"(graph @g(%x: f32[2,8,16,16], %w: f32[16,8,3,3], %v: f32[8,16,1,1]) {
  %0 = conv2d(%x, %w) {padding=[1,1,1,1]} : f32[2,16,16,16]
  %1 = relu(%0) : f32[2,16,16,16]
  %2 = conv2d(%1, %v) {stride=[2,2]} : f32[2,8,8,8]
  return %2
})";

TEST(LibrarySteps, AreBilledWithTheirOperandsAndResult) {
  for (const Rules rules : {Rules::all, Rules::none}) {
    const Plan plan = plan_of(kLibraryGraph, "cuda:sm_90,cudnn=1", rules);
    EXPECT_EQ(expect_billed(plan), 1);
    for (const PlanStep& step : plan.steps) {
      if (!step.library) continue;
      EXPECT_EQ(step.read_bytes, 4 * (2 * 8 * 16 * 16 + 16 * 8 * 3 * 3));
      EXPECT_EQ(step.written_bytes, 4 * 2 * 16 * 16 * 16);
    }
  }
}

TEST(LibrarySteps, OfATrainingStepToo) {
  const models::ModelGraph m = models::model_graph("resnet18@2x3x64x64:train");
  const Plan plan = make_plan(m.graph, {Target::parse("cuda:sm_90,cudnn=2"),
                                        Rules::all,
                                        {m.donated.begin(), m.donated.end()},
                                        runtime::cudnn::supports_step});
  EXPECT_GT(expect_billed(plan), 50);
}

}  // namespace
}  // namespace fusejit::scheduler
