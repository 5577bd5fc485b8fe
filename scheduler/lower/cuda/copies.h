// In how many copies of their bodies serial loops run ("unroll n", docs/kernel-ir.md §5).
#pragma once

#include "ir/kernel/kernel.h"

namespace fusejit::scheduler::cuda {

// Says it where the compiler would make more copies than registers are there for, or fewer than keep enough loads in
// flight; other loops are left to it.
void bound_copies(ir::Kernel& kernel);

}  // namespace fusejit::scheduler::cuda
