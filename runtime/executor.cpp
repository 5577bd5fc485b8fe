#include "runtime/executor.h"

#include "scheduler/report/memory.h"

namespace fusejit::runtime {

RunReport report_of(const scheduler::Plan& plan) {
  RunReport report;
  report.kernels = static_cast<std::int64_t>(plan.steps.size());
  report.ledger_bytes = plan.ledger_bytes(), report.bound_bytes = plan.bound_bytes;
  report.arena_bytes = plan.arena_bytes, report.memory_bytes = scheduler::memory_use(plan).total();
  report.recomputed = plan.recomputed, report.extra_time = plan.extra_time;
  return report;
}

}  // namespace fusejit::runtime
