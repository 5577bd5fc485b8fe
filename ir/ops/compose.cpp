#include "ir/ops/compose.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "ir/op.h"

namespace fusejit::ir::compose {

using namespace expr;

Value cast_to(const Value& x, DType dtype) {
  return x.type().dtype == dtype ? x : build(Op::cast, {x}, {{"dtype", dtype}});
}

Operand cast_to(const Operand& x, DType dtype) { return x.is_number() ? x : Operand(cast_to(x.value, dtype)); }

Value wide(const Value& x) { return cast_to(x, compute_type(x.type().dtype)); }

Value reshape(const Value& x, std::span<const std::int64_t> shape) {
  const auto have = x.type().shape.dims();
  if (std::equal(have.begin(), have.end(), shape.begin(), shape.end())) return x;
  return build(Op::reshape, {x}, {{"shape", shape}});
}

Value reshape(const Value& x, const Shape& shape) { return reshape(x, shape.dims()); }

Value permute(const Value& x, const Dims& dims) { return build(Op::permute, {x}, {{"dims", dims}}); }

Value transpose(const Value& x) {
  Dims dims = all_dims(x.type().shape.rank());
  std::swap(dims[dims.size() - 1], dims[dims.size() - 2]);
  return permute(x, dims);
}

Value where(const Operand& condition, const Operand& a, const Operand& b) {
  return build(Op::where, {condition, a, b});
}

Value sum(const Value& x, const Dims& dims, bool keepdim) {
  return build(Op::sum, {x}, {{"dim", dims}, {"keepdim", keepdim}});
}

Value mean(const Value& x, const Dims& dims, bool keepdim) {
  return build(Op::mean, {x}, {{"dim", dims}, {"keepdim", keepdim}});
}

Value amax(const Value& x, const Dims& dims, bool keepdim) {
  return build(Op::amax, {x}, {{"dim", dims}, {"keepdim", keepdim}});
}

Value full(const Shape& shape, double value, DType dtype) {
  return build(Op::full, {}, {{"shape", shape.dims()}, {"value", value}, {"dtype", dtype}});
}

Dims all_dims(int rank) {
  Dims dims(static_cast<std::size_t>(rank));
  std::iota(dims.begin(), dims.end(), 0);
  return dims;
}

Dims all_but_channel(int rank) {
  Dims dims = all_dims(rank);
  dims.erase(dims.begin() + 1);
  return dims;
}

Operand channel(const Operand& vector, int rank) {
  if (vector.is_number()) return vector;
  Dims shape(static_cast<std::size_t>(rank), 1);
  shape[1] = vector.value.type().shape[0];
  return reshape(vector.value, shape);
}

Shape kept(const Shape& shape, const Dims& dims) {
  Dims sizes(shape.begin(), shape.end());
  for (std::int64_t dim : dims) sizes[static_cast<std::size_t>(dim)] = 1;
  return Shape(sizes);
}

std::int64_t extent(const Shape& shape, const Dims& dims) {
  std::int64_t count = 1;
  for (std::int64_t dim : dims) count *= shape[static_cast<int>(dim)];
  return count;
}

Value sum_to(const Value& g, const Shape& shape) {
  const Shape& from = g.type().shape;
  if (from == shape) return g;
  const int missing = from.rank() - shape.rank();
  Dims dims;
  for (int axis = 0; axis < from.rank(); ++axis)
    if (axis < missing || (shape[axis - missing] == 1 && from[axis] != 1)) dims.push_back(axis);
  return reshape(dims.empty() ? g : sum(g, dims), shape);
}

Value scaled(const Value& a, const Operand& b) { return b.is_number() && b.number == 1 ? a : a * b; }

Value shifted(const Value& a, const Operand& b) { return b.is_number() && b.number == 0 ? a : a + b; }

Centred centred(const Value& x, const Dims& dims) {
  const Value average = mean(x, dims);
  return {average, x - reshape(average, kept(x.type().shape, dims))};
}

Value variance(const Value& x, const Dims& dims, std::int64_t correction) {
  return build(Op::var, {x}, {{"dim", std::span<const std::int64_t>(dims)}, {"correction", correction}});
}

}  // namespace fusejit::ir::compose
