#include "scheduler/lower/nest/factor.h"

#include "scheduler/schedule/dims.h"

namespace fusejit::scheduler {

using ir::Arg;
using ir::Op;

DType factor_type(const Schedule& schedule, DType compute) { return schedule.dot.empty() ? compute : DType::u32; }

int axis_of_pairs(const ir::ContractionOperand& operand, int dim) {
  for (std::size_t i = 0; i < operand.index.size(); ++i) {
    if (is_dim(operand.index[i], dim)) return static_cast<int>(i);
  }
  return -1;
}

Arg bf16_pair(Expression& expression, int node, const ir::ContractionOperand& operand, const LogicalIndex& first,
              int dim, int outside) {
  LogicalIndex second = first;
  const ir::ValueId word = outside >= 0 ? -1 : expression.stored_pair(node, first, axis_of_pairs(operand, dim));
  if (word >= 0) return word;
  for (std::size_t i = 0; i < second.size(); ++i)
    second[i] = second[i] + ir::Index(operand.index[i].coefficient_of(dim));
  ir::KernelBuilder& builder = expression.builder();
  const auto bits_at = [&](const LogicalIndex& at) -> Arg {
    const auto bits = [&] { return Arg(builder.def(Op::bits, {expression.stored_value(node, at)}, DType::u32)); };
    if (outside < 0) return bits();
    const auto axis = static_cast<std::size_t>(outside);
    return builder.choose(
        within(at[axis], operand.extents[axis]), {DType::u32}, [&] { return std::vector<Arg>{bits()}; },
        [&] { return std::vector<Arg>{ir::KernelBuilder::literal(0, DType::u32)}; })[0];
  };
  const Arg low = bits_at(first), high = bits_at(second);
  const Arg shifted = builder.def(Op::shl, {high, ir::KernelBuilder::literal(16, DType::u32)}, DType::u32);
  return builder.def(Op::bitwise_or, {low, shifted}, DType::u32);
}

}  // namespace fusejit::scheduler
