// What a run of a plan needs of memory, predicted from the plan alone.
#pragma once

#include <cstdint>
#include <string>

#include "scheduler/plan.h"

namespace fusejit::scheduler {

// In bytes. What threads use beside the arena, for themselves, is not in it: a few hundred KiB each at most.
struct MemoryUse {
  std::int64_t arguments = 0;  // parameters, state, the batch: of whoever calls
  std::int64_t results = 0;    // that are not written over an argument
  std::int64_t derived = 0;    // kept with fixed arguments: packed weights
  std::int64_t constants = 0;
  std::int64_t arena = 0;  // inner values, packed weights, workspace: one allocation, taken for a run

  std::int64_t total() const { return arguments + results + derived + constants + arena; }
};

MemoryUse memory_use(const Plan& plan);
// "34 values computed again in 15.0 % of the time"
std::string recomputation_text(const Plan& plan);
// "1088.5 MiB (arguments 195.0 MiB, arena 893.5 MiB)"
std::string str(const MemoryUse& use);

}  // namespace fusejit::scheduler
