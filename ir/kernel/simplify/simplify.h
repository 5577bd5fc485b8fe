// The two halves of simplify(), and what comes after it where lowering made the kernel.
#pragma once

#include "ir/kernel/kernel.h"

namespace fusejit::ir {

// Folds constants and proven conditions, drops empty loops, puts one-iteration serial loops in place.
void fold(Kernel& kernel);
// Drops values, locals, loops and ifs that nothing depends on.
void drop_dead(Kernel& kernel);

// Makes loads through views conditional whose bounds are not proven (V3); true if there are any. No such condition ever
// fails: a view names elements of its operand only, but stacked views may say so in a way that the proof does not
// follow.
bool guard_views(Kernel& kernel);

}  // namespace fusejit::ir
