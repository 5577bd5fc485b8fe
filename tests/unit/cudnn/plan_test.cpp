// Planning for described devices: walking the list, numerics, saving and reloading.
#include "runtime/cudnn/graph/plan.h"

#include <set>

#include "fusejit/error.h"
#include "tests/unit/cudnn/with_cudnn.h"

namespace fusejit::runtime::cudnn {
namespace {

ConvolutionCall planned_call(DType dtype = DType::f16, Layout layout = Layout::nhwc) {
  ConvolutionCall call;
  call.dtype = dtype;
  call.layout = layout;
  call.x = Shape{16, 64, 56, 56};
  call.w = Shape{64, 64, 3, 3};
  call.padding = {1, 1, 1, 1};
  return call;
}

TEST(Forbidden, NamesTheNoteThatIsInTheWay) {
  const std::vector<NumericalNote> tensor_core = {CUDNN_NUMERICAL_NOTE_TENSOR_CORE};
  const std::vector<NumericalNote> winograd = {CUDNN_NUMERICAL_NOTE_WINOGRAD};
  const std::vector<NumericalNote> atomics = {CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC};
  EXPECT_STREQ(forbidden(tensor_core, DType::f32, {}), "it computes in TF32");
  EXPECT_EQ(forbidden(tensor_core, DType::f16, {}), nullptr);
  EXPECT_EQ(forbidden(tensor_core, DType::f32, {.tf32 = true, .nondeterministic = false, .winograd = false}), nullptr);
  EXPECT_NE(forbidden(winograd, DType::f32, {}), nullptr);
  EXPECT_NE(forbidden(atomics, DType::f16, {}), nullptr);
  EXPECT_EQ(forbidden(atomics, DType::f16, {.tf32 = false, .nondeterministic = true, .winograd = false}), nullptr);
}

using Planning = WithCudnn;

TEST_F(Planning, TakesPrecompiledEnginesOnly) {
  ConvolutionCall call = planned_call();
  call.side = call.bias = true;
  call.activation = Activation::relu;
  const PlanResult found = find_plans(library_, device("H100"), call);
  ASSERT_EQ(found.plans.size(), 1u) << found.why_not();
  EXPECT_EQ(found.plans[0].engine.tier, Tier::precompiled);
  EXPECT_EQ(found.plans[0].call, call.str());
  std::set<Role> roles;
  for (const TensorUse& use : found.plans[0].tensors) roles.insert(use.role);
  EXPECT_EQ(roles, (std::set<Role>{Role::x, Role::w, Role::y, Role::side, Role::bias}));
}

TEST_F(Planning, GivesTheFirstFewForTiming) {
  PlanOptions options;
  options.plans = 4;
  const PlanResult found = find_plans(library_, device("A100"), planned_call(), options);
  ASSERT_EQ(found.plans.size(), 4u) << found.why_not();
}

TEST_F(Planning, Tf32OnlyIfAskedFor) {
  const auto tensor_core = [&](const Numerics& numerics) {
    PlanOptions options;
    options.numerics = numerics;
    options.plans = 8;
    int count = 0;
    for (const Plan& plan : find_plans(library_, device("H100"), planned_call(DType::f32), options).plans) {
      const auto& notes = plan.engine.numerical_notes;
      count += std::count(notes.begin(), notes.end(), CUDNN_NUMERICAL_NOTE_TENSOR_CORE) > 0;
    }
    return count;
  };
  EXPECT_EQ(tensor_core({}), 0);
  EXPECT_GT(tensor_core({.tf32 = true, .nondeterministic = false, .winograd = false}), 0);
}

TEST_F(Planning, SumsWithoutWorkspaceAreByAtomics) {
  ConvolutionCall call = planned_call();
  call.sums = Sums::statistics;
  // The precompiled engine of sm_90 has a workspace, that of sm_100 has none.
  EXPECT_FALSE(find_plans(library_, device("H100"), call).plans.empty());
  PlanOptions options;
  EXPECT_TRUE(find_plans(library_, device("B200"), call, options).plans.empty());
  options.numerics.nondeterministic = true;
  EXPECT_FALSE(find_plans(library_, device("B200"), call, options).plans.empty());
}

TEST_F(Planning, RefusalsKeepTheirReason) {
  ConvolutionCall call = planned_call(DType::f32);
  call.sums = Sums::statistics;
  PlanOptions options;
  options.runtime_compiled = has_driver_;
  const PlanResult found = find_plans(library_, device("H100"), call, options);
  EXPECT_TRUE(found.plans.empty());
  EXPECT_EQ(found.why_not().substr(0, 9), "no engine");
  if (has_driver_) {
    EXPECT_NE(found.why_not().find("it computes in TF32"), std::string::npos) << found.why_not();
  }
}

TEST_F(Planning, APlanComesBackFromItsText) {
  for (const Direction direction : {Direction::forward, Direction::input_gradient, Direction::weight_gradient}) {
    ConvolutionCall call = planned_call(DType::bf16);
    call.direction = direction;
    const PlanResult found = find_plans(library_, device("H100"), call);
    ASSERT_EQ(found.plans.size(), 1u) << found.why_not();
    const Plan& plan = found.plans[0];
    // H200 is of the same architecture: plans are exchanged freely.
    const Plan again = reload_plan(library_, device("H200"), call, plan.json());
    EXPECT_EQ(again.engine.index, plan.engine.index);
    EXPECT_EQ(again.workspace_bytes, plan.workspace_bytes);
    EXPECT_EQ(again.tensors.size(), plan.tensors.size());
    EXPECT_THROW(reload_plan(library_, device("A100"), call, plan.json()), DeviceError) << "another architecture";
  }
}

TEST_F(Planning, DamagedTextIsRefused) {
  const ConvolutionCall call = planned_call();
  const PlanResult found = find_plans(library_, device("H100"), call);
  ASSERT_FALSE(found.plans.empty());
  const std::string json = found.plans[0].json();
  EXPECT_THROW(reload_plan(library_, device("H100"), call, ""), Error);
  EXPECT_THROW(reload_plan(library_, device("H100"), call, "{}"), Error);
  EXPECT_THROW(reload_plan(library_, device("H100"), call, json.substr(0, json.size() / 2)), Error);
  EXPECT_NO_THROW(reload_plan(library_, device("H100"), call, json)) << "the next call works";
}

TEST_F(Planning, ARuntimeCompiledPlanKeepsItsCode) {
  if (!has_driver_) GTEST_SKIP() << "cuDNN: no libcuda.so.1, so no runtime-compiled engine";
  ConvolutionCall call = planned_call();
  call.bias = true;
  call.activation = Activation::silu;
  PlanOptions options;
  options.precompiled = false;
  options.runtime_compiled = true;
  const PlanResult found = find_plans(library_, device("A100"), call, options);
  ASSERT_EQ(found.plans.size(), 1u) << found.why_not();
  EXPECT_EQ(found.plans[0].engine.tier, Tier::runtime_compiled);
  const std::string json = found.plans[0].json();
  EXPECT_GT(json.size(), 20000u) << "the compiled kernel is in it";
  EXPECT_EQ(reload_plan(library_, device("A100"), call, json).engine.index, found.plans[0].engine.index);
}

TEST_F(Planning, TheKeyOfAPlanHasEverythingInIt) {
  const std::string key = plan_key(*library_, 90, planned_call(), {});
  EXPECT_EQ(plan_key(*library_, 90, planned_call(), {}), key);
  EXPECT_NE(plan_key(*library_, 80, planned_call(), {}), key);
  PlanOptions options;
  options.numerics.tf32 = true;
  EXPECT_NE(plan_key(*library_, 90, planned_call(), options), key);
  ConvolutionCall call = planned_call();
  call.padding[3] = 0;
  EXPECT_NE(plan_key(*library_, 90, call, {}), key);
}

TEST_F(Planning, WhatHasNoAddressIsNotRun) {
  const PlanResult found = find_plans(library_, device("H100"), planned_call());
  ASSERT_EQ(found.plans.size(), 1u) << found.why_not();
  const auto nothing = [](Role) -> void* { return nullptr; };
  EXPECT_THROW(execute(library_, nullptr, found.plans[0], nothing, nullptr), InternalError);
  const auto unaligned = [](Role) { return reinterpret_cast<void*>(8); };
  EXPECT_THROW(execute(library_, nullptr, found.plans[0], unaligned, nullptr), InternalError);
}

TEST_F(Planning, WrongCallsAreErrorsOfTheCaller) {
  ConvolutionCall call = planned_call();
  call.groups = 3;
  EXPECT_THROW(find_plans(library_, device("H100"), call), UserError);
}

}  // namespace
}  // namespace fusejit::runtime::cudnn
