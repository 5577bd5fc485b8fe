// Loop nests of groups without an anchor.
#pragma once

#include "scheduler/lower/group_kernel.h"

namespace fusejit::scheduler {

// No reductions; reductions, finals and the values stored on the way. `overlapping`: an overlapping_pool_grad() whose
// first maxima are kept, or -1.
void emit_pointwise(GroupKernel& kernel, int overlapping);
void emit_reduction(GroupKernel& kernel, int overlapping);

}  // namespace fusejit::scheduler
