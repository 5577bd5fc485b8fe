// TimedPlan: a plan with its machine code that runs on made-up arguments and says how long each step takes.
#pragma once

#include <chrono>
#include <vector>

#include "ir/graph.h"
#include "runtime/cpu/executor.h"

namespace fusejit::runtime {

// One for each parameter, of small numbers.
std::vector<Buffer> made_up_arguments(const ir::Graph& graph);

class TimedPlan {
 public:
  // `arguments`: may be those of other plans of the graph too; what is donated is overwritten. `fixed`: per
  // parameter, as the plan was made; empty: none. Those are copied, since what is derived from them is kept with them.
  TimedPlan(const ir::Graph& graph, std::vector<Buffer> arguments, const std::vector<bool>& fixed, scheduler::Plan plan,
            CpuExecutor::Kernels kernels, Workers& workers);
  TimedPlan(const TimedPlan&) = delete;
  TimedPlan& operator=(const TimedPlan&) = delete;

  const scheduler::Plan& plan() const { return *plan_; }
  const CpuExecutor::Kernels& kernels() const { return kernels_; }
  // Seconds of each step; 0 of one that had nothing to do.
  const std::vector<double>& run();

 private:
  const ir::Graph& graph_;
  const std::shared_ptr<const scheduler::Plan> plan_;
  const CpuExecutor::Kernels kernels_;
  std::vector<Buffer> arguments_;
  std::vector<double> seconds_;
  std::chrono::steady_clock::time_point began_;
  CpuExecutor executor_;
};

}  // namespace fusejit::runtime
