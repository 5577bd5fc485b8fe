// What contenders share that run plans of graphs, kernel by kernel, a graph for each part.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "bench/contest/contender.h"
#include "bench/measure.h"
#include "ir/graph.h"

namespace fusejit::bench {

// A step is a run of the plan of `graph_of(part, dtype)`: wall time of the kernels that `counts` says yes to.
inline int serve_plans(
    const contest::Flags& flags,
    const std::function<ir::Graph(const std::string& part, const std::string& dtype)>& graph_of,
    const std::function<bool(const std::string& part, const scheduler::Plan&, const scheduler::PlanStep&)>& counts) {
  const double held_before = contest::resident_mib("VmRSS");
  const std::string winograd = flags.text("winograd", "off"), dtype = flags.text("dtype", "f32");
  const Target target = Target::parse(winograd == "auto" ? "host,winograd=1" : "host");
  Workers workers(flags.number("threads", 2));
  std::string now;
  std::unique_ptr<TimedPlan> plan;
  return contest::serve("fusejit", held_before, [&](const std::string& part) {
    if (part != now) {
      plan.reset();
      plan =
          std::make_unique<TimedPlan>(graph_of(part, dtype), scheduler::PlanOptions{target, scheduler::Rules::all, {}});
      now = part;
    }
    plan->forget();
    plan->measure(workers);
    double milliseconds = 0;
    for (std::size_t s = 0; s < plan->plan().steps.size(); ++s) {
      if (counts(part, plan->plan(), plan->plan().steps[s])) milliseconds += plan->timing(s).wall.front();
    }
    return contest::StepResult{.milliseconds = milliseconds};
  });
}

}  // namespace fusejit::bench
