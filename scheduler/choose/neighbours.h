// neighbours: schedules of the same work that differ in one thing, all of them legal. What tuning tries
// (runtime/tuning/tune.h): a walk from neighbour to neighbour reaches most of what choosers choose from.
#pragma once

#include <vector>

#include "scheduler/schedule/domain.h"

namespace fusejit::scheduler {

// Those that are more likely to be faster come first. No copy of an operand is taken away: what is computed for it may
// be worth hundreds of reads. On CUDA none that changes the elements of an access, or a thread's registers. `sums`: as
// check().
std::vector<Schedule> neighbours(const ir::Contraction& contraction, const Schedule& schedule, const Target& target,
                                 bool sums);
// Of a list those that add up in the order of `schedule` (sum_order), and so have its bits.
std::vector<Schedule> of_same_order(std::vector<Schedule> list, const ir::Contraction& contraction,
                                    const Schedule& schedule, bool sums);
std::vector<Schedule> neighbours(const Domain& domain, const Schedule& schedule, const Target& target);

}  // namespace fusejit::scheduler
