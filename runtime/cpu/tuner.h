// tuned_plan: the plan of a graph with schedules that were chosen by their time.
//
// All kernels of the plan are tried at once: the plan as it is and one in which every kernel has its next other schedule
// run in turn, on arguments made up for it, and each kernel is judged by itself, in the plan's own order and memory, so
// that caches hold what they will hold. Steps with equal kernels are judged by their sum and stay equal. What was
// faster is put together and measured once more beside the plan as it was; what does not hold then is taken back.
#pragma once

#include <functional>
#include <string>

#include "ir/graph.h"
#include "runtime/cpu/executor.h"
#include "runtime/cpu/kernel_cache.h"
#include "runtime/tune.h"
#include "scheduler/make_plan.h"

namespace fusejit::runtime {

struct TuneOptions {
  Tune tune = Tune::quick;
  int threads = 1;                                        // to compile on
  std::shared_ptr<KernelCache> kernels;                   // of the plan as it is; those only tried are not kept
  std::function<void(const std::string& line)> log = {};  // what came of it; may be empty
};

// `wanted` without a `reschedule`. Throws what make_plan throws; where a group's kernel cannot be made, the plan is
// make_plan's, not tuned.
scheduler::Plan tuned_plan(const ir::Graph& graph, const scheduler::PlanOptions& wanted, const TuneOptions& options,
                           Workers& workers);

}  // namespace fusejit::runtime
