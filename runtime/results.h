// Where the results of a plan go: what is an argument stays one, the rest gets memory of its own.
#pragma once

#include <span>
#include <vector>

#include "ir/base/check.h"
#include "runtime/buffer.h"
#include "scheduler/plan.h"

namespace fusejit::runtime {

// `allocate(type)` gives a buffer where the plan runs, `fill(buffer, bytes)` copies a constant there.
template <class Allocate, class Fill>
std::vector<Buffer> bind_results(const scheduler::Plan& plan, const ir::Graph& graph, std::span<const Buffer> arguments,
                                 const Allocate& allocate, const Fill& fill) {
  std::vector<Buffer> results(plan.results.size());
  for (std::size_t r = 0; r < results.size(); ++r) {
    const Type& type = graph.results()[r].type();
    const scheduler::PlanValue& value = plan.values[static_cast<std::size_t>(plan.results[r])];
    switch (value.storage) {
      case scheduler::Storage::argument:
      case scheduler::Storage::donated:
        results[r] = arguments[static_cast<std::size_t>(value.index)].as(type);
        break;
      case scheduler::Storage::result:
        results[r] = value.index == static_cast<int>(r) ? allocate(type)
                                                        : results[static_cast<std::size_t>(value.index)].as(type);
        break;
      case scheduler::Storage::constant:
        results[r] = allocate(type);
        fill(results[r], value.data);
        break;
      case scheduler::Storage::derived:
      case scheduler::Storage::arena:
        FJ_ASSERT(false, "result {} of @{} is a temporary", r, plan.name);
    }
  }
  return results;
}

}  // namespace fusejit::runtime
