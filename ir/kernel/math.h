// Fragments: the meaning of functions (exp, tanh, ...) as straight-line kernel IR beside their rows (kernel-ir.md §7).
#pragma once

#include <string_view>
#include <vector>

#include "ir/kernel/kernel.h"

namespace fusejit::ir {

// A fragment as read: values 0..n-1 are the arguments, the others follow in order of definition.
struct Fragment {
  int arguments = 0;
  std::vector<DType> values;
  std::vector<DefStmt> definitions;
  Arg result;
};

// True if the row of `op` has a fragment for `compute` (f32 or f64).
bool has_fragment(Op op, DType compute);
// The fragment of a row, read once. Without fma (x86:v2) each `fma` is mechanically `mul` then `add`. InternalError if
// the row has none.
const Fragment& fragment(Op op, DType compute, bool has_fma);
// Reads one text. One argument is called %x; two or three are %a, %b, %c. Throws ParseError.
Fragment parse_fragment(std::string_view text, int arguments, DType compute, bool has_fma);

}  // namespace fusejit::ir
