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

// The kernel that lays out graph value `value` as value `packed`, in the order of packed_dims() (nest.h).
LoweredKernel lower_packing(const LowerContext& context, const ir::Contraction& contraction, const Schedule& schedule,
                            int value, int packed, const std::string& name);

}  // namespace fusejit::scheduler
