// What readers of a view's index map (OpDef::view_map) ask beside it.
#pragma once

#include "ir/node.h"

namespace fusejit::ir {

// Of elements that no operand has: pad's `value`, else zero.
Scalar view_fill(const Node& view, DType type);
// Of a view of one operand with as many elements: they stand in the same row-major order.
bool view_keeps_order(const Node& view);

}  // namespace fusejit::ir
