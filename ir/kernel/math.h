// Fragments: the meaning of functions (exp, tanh, ...) as straight-line kernel IR beside their rows (kernel-ir.md §7).
#pragma once

#include <vector>

#include "ir/kernel/kernel.h"

namespace fusejit::ir {

// The parsed fragment of a row for `compute` (f32 or f64): values 0..n-1 are the arguments. For x86:v2 each fma is
// mechanically mul then add. Cached; InternalError if the row has none.
struct Fragment {
  std::vector<DType> values;
  std::vector<DefStmt> definitions;
  Arg result;
};
const Fragment& fragment(Op op, DType compute, bool has_fma);

}  // namespace fusejit::ir
