// Phases of a kernel as one: task by task, so that what they all read is in a cache.
#pragma once

#include "ir/kernel/kernel.h"

namespace fusejit::ir {

// The first phases that are shared out in the same loops, and of which none touches what another one stores, but other
// elements of the same, become one; the kernel as it is where there are no two.
Kernel join_phases(const Kernel& kernel);

}  // namespace fusejit::ir
