// Loop nests of groups for CUDA: grid, block and lane loops (docs/kernel-ir.md §5) instead of tasks and vectors.
//
// `lanes` elements are one access of a thread. Whether every access may be that wide is known when the nest is written
// (KernelBuilder::vectors_aligned), so lowering tries the widest first.
#pragma once

#include "scheduler/lower/group_kernel.h"

namespace fusejit::scheduler::cuda {

void emit_pointwise(GroupKernel& kernel, std::int64_t lanes);
void emit_reduction(GroupKernel& kernel, std::int64_t lanes);

}  // namespace fusejit::scheduler::cuda
