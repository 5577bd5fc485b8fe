// Loop nests of groups without an anchor.
#pragma once

#include "scheduler/lower/group_kernel.h"

namespace fusejit::scheduler {

void emit_pointwise(GroupKernel& kernel);  // no reductions
void emit_reduction(GroupKernel& kernel);  // reductions, finals and the values stored on the way

}  // namespace fusejit::scheduler
