// Packing: a contraction's second operand laid out once, so that the nest reads it line after line.
#pragma once

#include "ir/contraction.h"
#include "scheduler/lower/lower.h"
#include "scheduler/schedule/schedule.h"

namespace fusejit::scheduler {

// Dims but the vector's that the second operand has in parallel, those above one element, outermost first.
std::vector<int> packed_apart(const ir::Contraction& contraction, const Schedule& schedule);
// Extents of the second operand laid out in the order in which it is read: those dims, blocks of the vector's dim, the
// reduced dims (for Winograd: the 36 points, and the channels), what one block holds.
std::vector<std::int64_t> packed_dims(const ir::Contraction& contraction, const Schedule& schedule);
// Where a matrix unit's rows merge taps (Schedule::merges_taps), the last dim of a place, one of so many pairs, becomes
// part of the dim before it.
void merge_taps(std::vector<ir::Index>& place, std::int64_t pairs);

// The kernel that lays out graph value `value` as value `packed`, in the order of packed_dims() (nest.h).
LoweredKernel lower_packing(const LowerContext& context, const ir::Contraction& contraction, const Schedule& schedule,
                            int value, int packed, const std::string& name);

}  // namespace fusejit::scheduler
