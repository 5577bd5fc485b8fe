#include "scheduler/lower/nest/factor.h"

namespace fusejit::scheduler {

using ir::Arg;
using ir::Op;

DType factor_type(const Schedule& schedule, DType compute) { return schedule.dot.empty() ? compute : DType::u32; }

Arg bf16_pair(Expression& expression, int node, const ir::ContractionOperand& operand, const LogicalIndex& first,
              int dim) {
  LogicalIndex second = first;
  for (std::size_t i = 0; i < second.size(); ++i)
    second[i] = second[i] + ir::Index(operand.index[i].coefficient_of(dim));
  ir::KernelBuilder& builder = expression.builder();
  const auto bits_at = [&](const LogicalIndex& at) {
    return Arg(builder.def(Op::bits, {expression.stored_value(node, at)}, DType::u32));
  };
  const Arg low = bits_at(first), high = bits_at(second);
  const Arg shifted = builder.def(Op::shl, {high, ir::KernelBuilder::literal(16, DType::u32)}, DType::u32);
  return builder.def(Op::bitwise_or, {low, shifted}, DType::u32);
}

}  // namespace fusejit::scheduler
