#include "scheduler/plan.h"

namespace fusejit::scheduler {

std::int64_t Plan::ledger_bytes() const {
  std::int64_t total = 0;
  for (const PlanStep& step : steps) total += step.read_bytes + step.written_bytes;
  return total;
}

std::int64_t live_arena_bytes_after(const Plan& plan, int step) {
  std::int64_t total = 0;
  for (const PlanValue& value : plan.values) {
    if (value.storage == Storage::arena && value.first_step <= step && value.last_step > step) total += value.bytes;
  }
  return total;
}

}  // namespace fusejit::scheduler
