// Another schedule in place of the chosen one: for which op it is asked, that it is what is built, and what is said
// where it cannot be.
#include <gtest/gtest.h>

#include <algorithm>

#include "scheduler/make_plan.h"

namespace fusejit::scheduler {
namespace {

const ir::Graph kGraph = ir::parse_graph(R"(graph @two(%x: f32[2,16,6,6], %w: f32[64,16,1,1], %v: f32[16,64,1,1]) {
  %0 = conv2d(%x, %w) : f32[2,64,6,6]
  %1 = relu(%0) : f32[2,64,6,6]
  %2 = conv2d(%1, %v) : f32[2,16,6,6]
  %3 = sum(%2) {dim=[0,2,3]} : f32[16]
  return %2, %3
})");

// With another schedule of one op; `asked`: the ops in order.
Plan with(const std::string& wanted, const std::string& text, Rules rules = Rules::all, const char* target = "x86:avx2",
          std::vector<std::string>* asked = nullptr) {
  PlanOptions options;
  options.target = Target::parse(target), options.rules = rules;
  options.reschedule.anchor = [&](const std::string& op, const AnchorChoice& choice) {
    if (asked != nullptr && (asked->empty() || asked->back() != op)) asked->push_back(op);
    return op == wanted ? parse_schedule("schedule { " + text + " }") : choice.chosen();
  };
  return make_plan(kGraph, options);
}

const PlanStep& step_of(const Plan& plan, const std::string& op) {
  for (const PlanStep& step : plan.steps)
    if (!step.schedules.empty() && std::find(step.ops.begin(), step.ops.end(), op) != step.ops.end()) return step;
  throw InternalError("no step has a schedule and computes " + op);
}

TEST(Reschedule, IsAskedForEveryAnchorByItsName) {
  for (const Rules rules : {Rules::all, Rules::none}) {
    for (const char* target : {"x86:avx2", "x86:avx512", "cuda:sm_90"}) {
      std::vector<std::string> asked;
      const Plan plan = with("none", "", rules, target, &asked);
      EXPECT_EQ(asked, (std::vector<std::string>{"%0 conv2d", "%2 conv2d"})) << target << ", rules=" << name(rules);
      EXPECT_EQ(plan, make_plan(kGraph, {Target::parse(target), rules, {}})) << "what is chosen changes nothing";
    }
  }
}

TEST(Reschedule, IsWhatIsBuiltAndStandsInThePlan) {
  const char* const other = "vector k 8 x 1 tile q 3 task n, p outer k inner q, c";
  for (const Rules rules : {Rules::all, Rules::none}) {
    const Plan chosen = make_plan(kGraph, {Target::parse("x86:avx2"), rules, {}}),
               plan = with("%0 conv2d", other, rules);
    const PlanStep &is = step_of(plan, "%0 conv2d"), &was = step_of(chosen, "%0 conv2d");
    ASSERT_EQ(is.schedules.size(), 1u);
    EXPECT_EQ(print(is.schedules[0].schedule), "schedule { " + std::string(other) + " }");
    EXPECT_EQ(is.schedules[0].work,
              "out[n, k, p, q] += a[n, c, p + r, q + s] * b[k, c, r, s]; n 2, p 6, q 6, k 64 | r 1, s 1, c 16");
    EXPECT_FALSE(*is.kernel == *was.kernel);
    EXPECT_EQ(step_of(plan, "%2 conv2d").schedules, step_of(chosen, "%2 conv2d").schedules);
  }
}

// Those of the last phase, which finishes the sums of the epilogue, too.
TEST(Reschedule, MayHaveOtherLanes) {
  const std::string kernel = ir::print(
      *step_of(with("%2 conv2d", "vector k 4 x 1 tile q 3 task n, p outer k inner q, c"), "%2 conv2d").kernel);
  EXPECT_NE(kernel.find("in 0..4 vector"), std::string::npos) << kernel;
  EXPECT_EQ(kernel.find("in 0..8 vector"), std::string::npos) << kernel;
}

TEST(Reschedule, RefusesWithTheRuleThatIsBroken) {
  const struct {
    const char *op, *text, *sentence;
    const char* target = "x86:avx2";
  } cases[] = {
      {"%0 conv2d", "vector k 8 x 2", "no loop goes over the 2 elements of n"},
      {"%0 conv2d", "vector c 8 x 2 task n, p inner q, c", "lanes run along c, which is summed up"},
      // Its results are summed up in the same kernel; those of the other convolution are not.
      {"%2 conv2d", "vector k 8 x 1 task n, c/8 outer k inner p, q, c combine k", "not summed up in the same kernel"},
      {"%0 conv2d", "vector k 8 x 1 tile q 6 task grid.x n*p*q/4, block.y n*p*q, block.x k inner c",
       "a thread does not access 8 elements at once here", "cuda:sm_90"},
  };
  for (const auto& c : cases) {
    try {
      with(c.op, c.text, Rules::all, c.target);
      ADD_FAILURE() << "accepted: " << c.text;
    } catch (const UserError& error) {
      EXPECT_NE(std::string(error.what()).find(c.sentence), std::string::npos) << error.what();
    }
  }
}

}  // namespace
}  // namespace fusejit::scheduler
