#include "tests/random/generate/schedule_trial.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <stdexcept>

#include "ir/base/scalar.h"
#include "ir/kernel/interp/interp.h"
#include "runtime/cpu/executor.h"
#include "runtime/cpu/kernel_cache.h"
#include "runtime/session.h"
#include "scheduler/make_plan.h"
#include "tests/support/nightly.h"

namespace fusejit::testing {

using ir::Graph;
using runtime::Buffer;
using scheduler::Schedule;

bool sums_results(const Graph& graph) {
  return std::any_of(graph.nodes().begin(), graph.nodes().end(),
                     [](const ir::Value& value) { return value->op == ir::Op::sum; });
}

namespace {

Trial planned(const Graph& graph, scheduler::PlanOptions options, const Draw& draw) {
  Trial trial;
  std::vector<std::pair<ir::Contraction, Schedule>> drawn;
  const bool sums = sums_results(graph);
  options.fall_back = false;
  options.reschedule.anchor = [&](const std::string& op, const scheduler::AnchorChoice& choice) {
    const ir::Contraction& contraction = choice.contraction;
    const Schedule schedule = draw(op, contraction, choice.chosen());
    trial.tried += fmt::format("{}\n  of {}\n", print(schedule), str(contraction));
    EXPECT_EQ(scheduler::parse_schedule(print(schedule)), schedule);
    drawn.push_back({contraction, schedule});
    return schedule;
  };
  try {
    trial.plan = scheduler::make_plan(graph, options);
  } catch (const UserError& error) {
    EXPECT_NE(std::string(error.what()).find(" is no schedule of "), std::string::npos) << error.what() << '\n'
                                                                                        << trial.tried;
    trial.legal = false;
    return trial;
  } catch (const std::exception& error) {
    throw std::runtime_error(fmt::format("{}\n{}", error.what(), trial.tried));
  }
  for (const scheduler::PlanStep& step : trial.plan.steps) {  // on a device the last of several widths is in the plan
    if (step.schedules.empty() || step.schedules[0].kind != scheduler::Work::contraction) continue;
    trial.drawn.assign(drawn.end() - static_cast<std::ptrdiff_t>(step.schedules.size()), drawn.end());
  }
  for (const auto& [contraction, schedule] : trial.drawn) trial.order += sum_order(contraction, schedule, sums) + "\n";
  return trial;
}

}  // namespace

Trial planned(const Graph& graph, const Target& target, const Draw& draw, ir::ContractionsFn contractions,
              bool is_optimised) {
  scheduler::PlanOptions options;
  options.target = target;
  options.is_optimised = is_optimised, options.contractions = contractions;
  return planned(graph, options, draw);
}

std::vector<Buffer> arguments_of(const Graph& graph, Random& random, bool whole) {
  // Sums of 16-bit numbers stay below what those hold exactly, so that it is the same where they are rounded.
  std::int64_t most = 3;
  for (int i = 0; i < graph.value_count(); ++i)
    if (bits(graph.value(i).type().dtype) == 16) most = 1;
  std::vector<Buffer> arguments;
  for (const ir::Value& parameter : graph.parameters()) {
    const Type& type = parameter.type();
    arguments.push_back(Buffer::allocate(type));
    for (std::int64_t i = 0; i < type.elements(); ++i) {
      const double number = whole ? static_cast<double>(random.from(-most, most))
                                  : static_cast<double>(random.from(-1'000'000, 1'000'000)) / 700'001;
      ir::store_element(arguments.back().data(), type.dtype, i, ir::cast(ir::Scalar::of(number), type.dtype));
    }
  }
  return arguments;
}

std::vector<Buffer> interpreted(const Graph& graph, const scheduler::Plan& plan, const std::vector<Buffer>& arguments) {
  runtime::Workers workers(1);
  const runtime::Checks checks{.poison = true, .order = ir::TaskOrder::shuffled, .kernel_interpreter = true};
  runtime::CpuExecutor executor(std::make_shared<const scheduler::Plan>(plan), {}, workers, checks);
  return executor.run(graph, arguments).results;
}

std::vector<Buffer> as_machine_code(const Graph& graph, const scheduler::Plan& plan,
                                    const std::vector<Buffer>& arguments, int threads) {
  std::vector<std::shared_ptr<const ir::Kernel>> kernels;
  for (const scheduler::PlanStep& step : plan.steps) kernels.push_back(step.kernel);
  runtime::KernelCache cache;
  runtime::Workers workers(threads);
  runtime::CpuExecutor executor(std::make_shared<const scheduler::Plan>(plan), cache.get(kernels, plan.target, 1),
                                workers);
  return executor.run(graph, arguments).results;
}

std::vector<Buffer> on_graph_interpreter(const Graph& graph, const std::vector<Buffer>& arguments) {
  return runtime::Session({.engine = runtime::Engine::graph_interpreter, .threads = 1}).run(graph, arguments);
}

std::string difference(const Graph& graph, const std::vector<Buffer>& got, const std::vector<Buffer>& want) {
  for (std::size_t r = 0; r < want.size(); ++r) {
    const Type& type = graph.results()[r].type();
    for (std::int64_t i = 0; i < type.elements(); ++i) {
      const ir::Scalar is = ir::load_element(got[r].data(), type.dtype, i),
                       should = ir::load_element(want[r].data(), type.dtype, i);
      if (is == should || is.as_double() == should.as_double()) continue;
      return fmt::format("element {} of {} of result {} is {}, not {}", i, type.elements(), r, is.as_double(),
                         should.as_double());
    }
  }
  return "";
}

}  // namespace fusejit::testing
