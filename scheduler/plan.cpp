#include "scheduler/plan.h"

#include <algorithm>

namespace fusejit::scheduler {

std::int64_t Plan::ledger_bytes() const {
  std::int64_t total = 0;
  for (std::size_t s = 0; s < steps.size(); ++s) {
    if (!is_derivation(static_cast<int>(s))) total += steps[s].read_bytes + steps[s].written_bytes;
  }
  return total;
}

bool Plan::is_derivation(int s) const {
  const std::vector<int>& used = steps[static_cast<std::size_t>(s)].values;
  return std::any_of(used.begin(), used.end(), [&](int v) {
    const PlanValue& value = values[static_cast<std::size_t>(v)];
    return value.storage == Storage::derived && value.first_step == s;
  });
}

std::int64_t live_arena_bytes_after(const Plan& plan, int step) {
  std::int64_t total = 0;
  for (const PlanValue& value : plan.values) {
    if (value.storage == Storage::arena && value.inside < 0 && value.first_step <= step && value.last_step > step)
      total += value.bytes;
  }
  return total;
}

}  // namespace fusejit::scheduler
