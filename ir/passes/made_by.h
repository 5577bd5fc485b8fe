#pragma once

#include "ir/node.h"

namespace fusejit::ir {

// True if the operand is a value, computed by this op.
inline bool made_by(const Operand& operand, Op op) { return operand.value && operand.value->op == op; }

}  // namespace fusejit::ir
