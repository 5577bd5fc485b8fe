// The order in which kernels run: values live no longer than they must.
#include <gtest/gtest.h>

#include <algorithm>

#include "ir/passes/grad.h"
#include "scheduler/make_plan.h"

namespace fusejit::scheduler {
namespace {

// Three convolutions, their gradients and, at the end, a step down along those.
ir::Graph descent(bool shared) {
  const ir::Graph forward =
      ir::parse_graph(R"(graph @three(%x: f32[4,16,20,20]:nhwc, %u: f32[16,16,3,3], %v: f32[16,16,3,3],
           %w: f32[16,16,3,3]) {
  %0 = conv2d(%x, %u) {padding=[1,1,1,1]} : f32[4,16,20,20]:nhwc
  %1 = relu(%0) : f32[4,16,20,20]:nhwc
  %2 = conv2d(%1, %v) {padding=[1,1,1,1]} : f32[4,16,20,20]:nhwc
  %3 = relu(%2) : f32[4,16,20,20]:nhwc
  %4 = conv2d(%3, )" + std::string(shared ? "%v" : "%w") +
                      R"() {padding=[1,1,1,1]} : f32[4,16,20,20]:nhwc
  %5 = sum(%4) : f32[]
  return %5
})");
  const ir::Graph step = ir::differentiate(forward, {"u", "v", "w"});
  std::vector<ir::Value> results{step.results()[0]};
  for (std::size_t i = 1; i < step.results().size(); ++i)
    results.push_back(ir::build(ir::Op::sub, {step.parameters()[i], ir::build(ir::Op::mul, {step.results()[i], 0.1})}));
  return ir::capture("descent", {step.parameters().begin(), step.parameters().end()}, results);
}

Plan planned_in_order(const ir::Graph& graph, const char* target) {
  return make_plan(graph, {Target::parse(target), Rules::all, {false, true, true, true}});
}

bool is_overwritten(const Plan& plan, int parameter) {
  return std::any_of(plan.values.begin(), plan.values.end(), [&](const PlanValue& value) {
    return value.storage == Storage::donated && value.index == parameter;
  });
}

int place_of(const Plan& plan, const std::string& op, int from = 0) {
  for (int s = from; s < static_cast<int>(plan.steps.size()); ++s) {
    const std::vector<std::string>& ops = plan.steps[static_cast<std::size_t>(s)].ops;
    if (std::any_of(ops.begin(), ops.end(), [&](const std::string& of) { return of.ends_with(op); })) return s;
  }
  return -1;
}

TEST(Order, WeightsAreUpdatedBehindTheGradientThatReadsThem) {
  for (const char* target : {"x86:avx2", "x86:avx512", "cuda:sm_90"}) {
    const Plan plan = planned_in_order(descent(false), target);
    // The last layer's weight gradient runs before the input gradient of the layer before it is asked for.
    const int first_input = place_of(plan, " conv2d_input_grad"), first_weight = place_of(plan, " conv2d_weight_grad"),
              second_input = place_of(plan, " conv2d_input_grad", first_input + 1);
    EXPECT_LT(first_input, first_weight) << target << ": the weights are read before they are overwritten";
    EXPECT_LT(first_weight, second_input) << target << "\n" << print_outline(plan);
    for (const int parameter : {1, 2, 3})
      EXPECT_TRUE(is_overwritten(plan, parameter)) << target << "\n" << print_outline(plan);
  }
}

// What two layers read is overwritten behind both, in place all the same.
TEST(Order, SharedWeightsAreUpdatedBehindAllReaders) {
  for (const char* target : {"x86:avx2", "cuda:sm_90"}) {
    const Plan plan = planned_in_order(descent(true), target);
    EXPECT_TRUE(is_overwritten(plan, 2)) << target << "\n" << print_outline(plan);
  }
}

// A layer's gradient is gone before the next layer's needs room: with all of them alive until the end it is more than
// five images.
TEST(Order, GradientsTakeNoMemoryOfTheirOwn) {
  const std::int64_t image = 4 * 16 * 20 * 20 * 4;
  EXPECT_LT(planned_in_order(descent(false), "x86:avx2").arena_bytes, 5 * image);
}

}  // namespace
}  // namespace fusejit::scheduler
