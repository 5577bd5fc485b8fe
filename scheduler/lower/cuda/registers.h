// What a thread of each phase may take: the budget that lowering's tiles and reductions need (docs/kernel-ir.md §4).
#pragma once

#include "ir/kernel/builder.h"

namespace fusejit::scheduler::cuda {

void bound_registers(ir::KernelBuilder& builder);

}  // namespace fusejit::scheduler::cuda
