// What a thread of each phase may take: the budget that lowering's reductions and rows of loads need
// (docs/kernel-ir.md §4). That of a contraction's tile is its schedule's.
#pragma once

#include <set>

#include "ir/kernel/builder.h"

namespace fusejit::scheduler::cuda {

// `said`: phases that are bounded already, or left to the compiler.
void bound_registers(ir::KernelBuilder& builder, const std::set<std::size_t>& said);

}  // namespace fusejit::scheduler::cuda
