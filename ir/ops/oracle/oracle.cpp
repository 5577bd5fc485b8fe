#include "ir/ops/oracle/oracle.h"

namespace fusejit::ir::oracle {
namespace {

double rounded(double value, DType dtype) { return cast(Scalar::of(value), compute_type(dtype)).as_double(); }

}  // namespace

std::vector<double> doubles(const EvalContext& context, std::size_t i, std::int64_t count) {
  const Array* array = context.operands[i];
  if (!array) {
    const double value = rounded(context.node.operands[i].number, context.node.type.dtype);
    return std::vector<double>(static_cast<std::size_t>(count), value);
  }
  std::vector<double> values(static_cast<std::size_t>(array->type.elements()));
  for (std::size_t n = 0; n < values.size(); ++n) values[n] = array->at(static_cast<std::int64_t>(n)).as_double();
  return values;
}

std::vector<std::int64_t> integers(const EvalContext& context, std::size_t i) {
  const Array& array = *context.operands[i];
  std::vector<std::int64_t> values(static_cast<std::size_t>(array.type.elements()));
  for (std::size_t n = 0; n < values.size(); ++n)
    values[n] = cast(array.at(static_cast<std::int64_t>(n)), DType::i64).i64();
  return values;
}

double number(const EvalContext& context, std::string_view attribute) {
  return rounded(context.node.attrs.number(attribute), context.operands[0]->type.dtype);
}

void store(Array& result, std::int64_t index, double value) {
  result.set(index, cast(Scalar::of(value), result.type.dtype));
}

void store(Array& result, const std::vector<double>& values) {
  for (std::size_t i = 0; i < values.size(); ++i) store(result, static_cast<std::int64_t>(i), values[i]);
}

Split::Split(const Shape& shape, std::int64_t axis) {
  for (int i = 0; i < shape.rank(); ++i) (i < axis ? outer : i == axis ? size : inner) *= shape[i];
}

std::vector<std::int64_t> broadcast_positions(const Shape& from, const Shape& to) {
  std::vector<std::int64_t> strides(static_cast<std::size_t>(to.rank()), 0);
  std::int64_t stride = 1;
  for (int axis = from.rank() - 1; axis >= 0; --axis) {
    if (from[axis] != 1) strides[static_cast<std::size_t>(axis + to.rank() - from.rank())] = stride;
    stride *= from[axis];
  }
  std::vector<std::int64_t> positions(static_cast<std::size_t>(to.elements()));
  for (std::int64_t i = 0; i < to.elements(); ++i) {
    std::int64_t rest = i;
    for (int axis = to.rank() - 1; axis >= 0; --axis) {
      positions[static_cast<std::size_t>(i)] += rest % to[axis] * strides[static_cast<std::size_t>(axis)];
      rest /= to[axis];
    }
  }
  return positions;
}

}  // namespace fusejit::ir::oracle
