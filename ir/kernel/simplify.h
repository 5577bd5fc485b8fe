// The two halves of simplify().
#pragma once

#include "ir/kernel/kernel.h"

namespace fusejit::ir {

// Folds constants and proven conditions, drops empty loops, puts one-iteration serial loops in place.
void fold(Kernel& kernel);
// Drops values, locals, loops and ifs that nothing depends on.
void drop_dead(Kernel& kernel);

}  // namespace fusejit::ir
