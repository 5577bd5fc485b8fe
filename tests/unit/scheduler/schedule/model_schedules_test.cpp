// Every schedule of every built-in model's plan breaks no rule, prints, and is read back; so is the plan's outline.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdlib>

#include "frontend/models/named.h"
#include "scheduler/make_plan.h"
#include "scheduler/schedule/domain.h"
#include "tests/support/nightly.h"

namespace fusejit::scheduler {
namespace {

struct Machine {
  const char* target;
  DType dtype;
  int half = -1;  // of the models by day; -1: none of them
};
void PrintTo(const Machine& m, std::ostream* out) { *out << m.target << " " << name(m.dtype); }

const Machine kMachines[] = {
    {"x86:avx512,fma=2,winograd=1", DType::f32, 0},
    {"x86:avx512bf16,fma=2,dot2=1", DType::bf16, 1},
    {"x86:amx,fma=2", DType::bf16, 0},
    {"x86:avx2", DType::f32, 1},
    {"cuda:sm_90", DType::f32, 0},
    {"x86:avx512", DType::f16},
    {"x86:avx2,winograd=1", DType::f32},
    {"x86:v2", DType::f32},
    {"cuda:sm_80", DType::bf16},
    {"cuda:sm_120", DType::f16},
};

std::vector<std::string> sources(int half) {
  const bool by_night = testing::is_nightly();
  std::vector<std::string> list;
  int number = 0;
  for (const models::NamedModel& model : models::named_models()) {
    if (number++ % 2 != half && !by_night) continue;
    const std::string name(model.name);
    const std::string image = name.starts_with("convnet") ? "" : "x3x224x224";
    list.push_back(fmt::format("{}@2{}:train", name, image));
    list.push_back(fmt::format("{}@1{}", name, image));
    if (by_night) list.push_back(fmt::format("{}@16{}:train", name, image));
  }
  return list;
}

class ModelSchedules : public ::testing::TestWithParam<Machine> {};

TEST_P(ModelSchedules, BreakNoRuleAndAreReadBack) {
  const Machine machine = GetParam();
  if (machine.half < 0 && !testing::is_nightly()) GTEST_SKIP() << "for the night";
  const Target target = Target::parse(machine.target);
  for (const std::string& source : sources(machine.half)) {
    SCOPED_TRACE(source);
    const models::ModelGraph model = models::model_graph(source, machine.dtype);
    std::size_t seen = 0;
    const auto read_back = [&](const Schedule& schedule, const std::string& broken) {
      ++seen;
      EXPECT_EQ(broken, "") << print(schedule);
      EXPECT_EQ(parse_schedule(print(schedule)), schedule);
    };
    PlanOptions options;
    options.target = target, options.donated = {model.donated.begin(), model.donated.end()};
    options.reschedule.anchor = [&](const std::string&, const AnchorChoice& choice) {
      read_back(choice.chosen(), check(choice.contraction, choice.chosen(), target, choice.sums));
      return choice.chosen();
    };
    options.reschedule.domain = [&](const std::string&, const Domain& domain, const Schedule& chosen) {
      read_back(chosen, check(domain, chosen, target));
      return chosen;
    };
    const Plan plan = make_plan(model.graph, options);
    std::size_t in_plan = 0;
    for (const PlanStep& step : plan.steps) in_plan += step.schedules.size();
    EXPECT_GE(seen, in_plan);
    EXPECT_GE(in_plan, plan.steps.size() / 2) << "few steps have a schedule";
    EXPECT_EQ(print_outline(parse_plan(print(plan))), print_outline(plan));
  }
}

INSTANTIATE_TEST_SUITE_P(Targets, ModelSchedules, ::testing::ValuesIn(kMachines));

}  // namespace
}  // namespace fusejit::scheduler
