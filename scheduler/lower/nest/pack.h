// Packing: a contraction's second operand laid out once, so that the nest reads it line after line.
#pragma once

#include "ir/contraction.h"
#include "scheduler/lower/lower.h"
#include "scheduler/schedule/schedule.h"

namespace fusejit::scheduler {

// The kernel that lays out graph value `value` as value `packed`, in the order of packed_dims() (nest.h).
LoweredKernel lower_packing(const LowerContext& context, const ir::Contraction& contraction, const Schedule& schedule,
                            int value, int packed, const std::string& name);

}  // namespace fusejit::scheduler
