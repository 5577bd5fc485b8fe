#include "scheduler/report/memory.h"

#include <fmt/format.h>

#include <utility>

#include "ir/base/number.h"

namespace fusejit::scheduler {

MemoryUse memory_use(const Plan& plan) {
  MemoryUse use;
  use.arena = plan.arena_bytes;
  for (const PlanValue& value : plan.values) {
    switch (value.storage) {
      case Storage::argument:
      case Storage::donated:
        use.arguments += value.bytes;
        break;
      case Storage::result:
        use.results += value.bytes;
        break;
      case Storage::derived:
        use.derived += value.bytes;
        break;
      case Storage::constant:
        use.constants += value.bytes;
        break;
      case Storage::arena:
        break;
    }
  }
  return use;
}

std::string recomputation_text(const Plan& plan) {
  return fmt::format("{} values computed again in {:.1f} % of the time", plan.recomputed, 100 * plan.extra_time);
}

std::string str(const MemoryUse& use) {
  std::string parts;
  for (const auto& [what, bytes] : {std::pair("arguments", use.arguments), std::pair("results", use.results),
                                    std::pair("kept for fixed arguments", use.derived),
                                    std::pair("constants", use.constants), std::pair("arena", use.arena)}) {
    if (bytes > 0) parts.append(parts.empty() ? "" : ", ").append(what).append(" ").append(ir::bytes_text(bytes));
  }
  return ir::bytes_text(use.total()) + (parts.empty() ? "" : " (" + parts + ")");
}

}  // namespace fusejit::scheduler
