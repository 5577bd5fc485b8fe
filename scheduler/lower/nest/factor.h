// Factors: what the products of a contraction are made of. Elements in the compute type, or, where dot2 multiplies,
// words of two neighbouring bf16, the first in the low half.
#pragma once

#include "scheduler/lower/expression/expression.h"
#include "scheduler/schedule/schedule.h"

namespace fusejit::scheduler {

DType factor_type(const Schedule& schedule, DType compute);
// The operand's logical dim whose neighbouring elements are neighbouring terms of `dim`; -1: there is none.
int axis_of_pairs(const ir::ContractionOperand& operand, int dim);
// Of `node`, which is bf16 and this operand: its element at `first` and the next one along `dim` of the contraction.
// `outside`: either may be there, and is 0 then; the logical dim along which it may.
ir::Arg bf16_pair(Expression& expression, int node, const ir::ContractionOperand& operand, const LogicalIndex& first,
                  int dim, int outside = -1);

}  // namespace fusejit::scheduler
