// Steps of plans as calls of cuDNN.
#include "runtime/cudnn/step.h"

#include <fmt/format.h>

#include <set>

#include "frontend/models/named.h"
#include "scheduler/schedule.h"
#include "tests/unit/cudnn/with_cudnn.h"

namespace fusejit::runtime::cudnn {
namespace {

scheduler::Plan plan_of(const char* model, const std::string& target) {
  const models::ModelGraph step = models::model_graph(model);
  return scheduler::schedule(step.graph, {Target::parse(target), "all", {step.donated.begin(), step.donated.end()}});
}

std::vector<ConvolutionCall> calls_of(const scheduler::Plan& plan) {
  std::vector<ConvolutionCall> calls;
  std::set<std::string> seen;
  for (const scheduler::PlanStep& step : plan.steps) {
    if (!step.library) continue;
    const StepCall wanted = step_call(*step.library);
    EXPECT_EQ(wanted.roles.size(), 3u);
    if (seen.insert(wanted.call.str()).second) calls.push_back(wanted.call);
  }
  return calls;
}

TEST(CudnnStep, EveryConvolutionOfAStepIsACall) {
  const scheduler::Plan plan = plan_of("convnet@4:train", "cuda:sm_90,cudnn=1");
  std::vector<std::string> calls;
  for (const ConvolutionCall& call : calls_of(plan)) calls.push_back(call.str());
  const std::string one = "x=[4,1,28,28] w=[32,1,3,3] stride=[1,1] padding=[0,0,0,0] dilation=[1,1] groups=1";
  const std::string two = "x=[4,32,26,26] w=[64,32,3,3] stride=[1,1] padding=[0,0,0,0] dilation=[1,1] groups=1";
  const std::vector<std::string> want = {"forward f32:nhwc " + one, "forward f32:nhwc " + two,
                                         "input_gradient f32:nhwc " + two, "weight_gradient f32:nhwc " + one,
                                         "weight_gradient f32:nhwc " + two};
  EXPECT_EQ(std::set<std::string>(calls.begin(), calls.end()), std::set<std::string>(want.begin(), want.end()));
  for (const scheduler::PlanStep& step : plan_of("convnet@4:train", "cuda:sm_90").steps) EXPECT_FALSE(step.library);
}

using StepOnCudnn = WithCudnn;

TEST_F(StepOnCudnn, EveryCallOfResNet50HasAPlan) {
  for (const char* name : {"A100", "H100", "B200"}) {
    const int capability = described_device(name).compute_capability;
    const auto calls = calls_of(plan_of("resnet50@16x3x224x224:train", fmt::format("cuda:sm_{},cudnn=1", capability)));
    EXPECT_GE(calls.size(), 60u);  // 53 convolutions three ways, equal ones counted once
    for (const ConvolutionCall& call : calls) {
      const PlanResult found = find_plans(library_, device(name), call);
      EXPECT_FALSE(found.plans.empty()) << name << ": " << call.str() << ": " << found.why_not();
      EXPECT_TRUE(supports(call, capability).ok) << call.str();
    }
  }
}

}  // namespace
}  // namespace fusejit::runtime::cudnn
