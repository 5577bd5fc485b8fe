// What joins tensors, takes them apart and moves their elements (fusejit/composed.h).
#include <algorithm>

#include "frontend/ops/axis.h"
#include "frontend/record.h"
#include "fusejit/composed.h"
#include "ir/base/check.h"

namespace fusejit {
namespace {

using ir::Op;

Dims dims_of(const Tensor& x) { return Dims(x.shape().begin(), x.shape().end()); }

std::string list(const Dims& numbers) { return fmt::format("[{}]", fmt::join(numbers, ",")); }

// 0, 1, 2, ... along axis `dim` of `shape`, beside x.
Tensor places(const Tensor& x, const Dims& shape, int dim) {
  return record_on(x.state()->device, Op::iota, {},
                   {{"shape", std::span<const std::int64_t>(shape)}, {"dim", dim}, {"dtype", i64}});
}

// x where column - row is on the wanted side of `diagonal`, else 0.
Tensor triangle(const char* op, const Tensor& x, std::int64_t diagonal, bool lower) {
  check_defined(op, x);
  FJ_CHECK(x.rank() >= 2, "{}: x must have at least two axes (x: {})", op, x.type().str());
  const CalledAs called(op);
  const std::int64_t rows = x.size(-2), columns = x.size(-1);
  // Beyond the matrix all places are alike, and none wraps.
  const std::int64_t right = std::clamp(diagonal, -rows, columns);
  const Tensor row = places(x, {rows, 1}, 0) + right, column = places(x, {1, columns}, 1);
  return where(lower ? column <= row : column >= row, x, 0);
}

}  // namespace

Tensor stack(const std::vector<Tensor>& tensors, int dim) {
  FJ_CHECK(!tensors.empty() && tensors.size() <= 64, "stack: {} tensors, 1 to 64 are wanted", tensors.size());
  for (const Tensor& t : tensors) check_defined("stack", t);
  for (std::size_t i = 1; i < tensors.size(); ++i) {
    FJ_CHECK(tensors[i].shape() == tensors[0].shape(),
             "stack: all tensors must have one shape, tensor {} has another than the first (first: {}, tensor {}: {})",
             i, tensors[0].type().str(), i, tensors[i].type().str());
  }
  const int axis = axis_of("stack", tensors[0], dim, 1);
  FJ_CHECK(tensors[0].rank() < kMaxRank, "stack: the result would have more than {} axes (first: {})", kMaxRank,
           tensors[0].type().str());
  const CalledAs called("stack");
  const DType dtype = common_dtype(tensors);
  std::vector<Tensor> parts;
  for (const Tensor& t : tensors) parts.push_back(unsqueeze(t.to(dtype), axis));
  return concat(parts, axis);
}

std::vector<Tensor> split(const Tensor& x, const Dims& sizes, int dim) {
  const int axis = axis_of("split", x, dim);
  const std::int64_t extent = x.size(axis);
  std::int64_t left = extent;
  for (const std::int64_t size : sizes) {
    FJ_CHECK(size >= 0 && size <= left, "split: the sizes {} do not add up to the extent {} (x: {})", list(sizes),
             extent, x.type().str());
    left -= size;
  }
  FJ_CHECK(left == 0, "split: the sizes {} do not add up to the extent {} (x: {})", list(sizes), extent,
           x.type().str());
  const CalledAs called("split");
  std::vector<Tensor> parts;
  std::int64_t start = 0;
  for (const std::int64_t size : sizes) {
    parts.push_back(slice(x, axis, start, start + size));
    start += size;
  }
  return parts;
}

std::vector<Tensor> split(const Tensor& x, std::int64_t split_size, int dim) {
  const std::int64_t extent = x.size(axis_of("split", x, dim));
  FJ_CHECK(split_size > 0 || (split_size == 0 && extent == 0), "split: split_size is {}, it must be positive (x: {})",
           split_size, x.type().str());
  if (extent == 0) return split(x, Dims{0}, dim);  // one piece, as PyTorch
  Dims sizes(static_cast<std::size_t>((extent - 1) / split_size), split_size);
  sizes.push_back(extent - split_size * static_cast<std::int64_t>(sizes.size()));
  return split(x, sizes, dim);
}

std::vector<Tensor> chunk(const Tensor& x, std::int64_t chunks, int dim) {
  const std::int64_t extent = x.size(axis_of("chunk", x, dim));
  FJ_CHECK(chunks > 0, "chunk: chunks is {}, it must be positive (x: {})", chunks, x.type().str());
  const CalledAs called("chunk");
  if (extent == 0) return split(x, Dims(static_cast<std::size_t>(chunks), 0), dim);
  return split(x, extent / chunks + (extent % chunks != 0), dim);
}

std::vector<Tensor> unbind(const Tensor& x, int dim) {
  const int axis = axis_of("unbind", x, dim);
  const CalledAs called("unbind");
  std::vector<Tensor> parts;
  for (std::int64_t i = 0; i < x.size(axis); ++i) parts.push_back(squeeze(slice(x, axis, i, i + 1), {axis}));
  return parts;
}

Tensor select(const Tensor& x, int dim, std::int64_t index) {
  const int axis = axis_of("select", x, dim);
  const CalledAs called("select");
  const std::int64_t extent = x.size(axis), at = index < 0 ? index + extent : index;
  FJ_CHECK(at >= 0 && at < extent, "select: there is no {} among the {} of dim {} (x: {})", index, extent, dim,
           x.type().str());
  return squeeze(slice(x, axis, at, at + 1), {axis});
}

const Tensor Tensor::operator[](std::int64_t index) const {
  check_defined("x[i]", *this);
  FJ_CHECK(rank() > 0, "x[i]: x has no axis, item() gives its value (x: {})", type().str());
  return select(*this, 0, index);
}

// The two axes, cut to a square of extent n, are one of n*n elements, and every (n + 1)-th of those is on the diagonal.
Tensor diagonal(const Tensor& x, std::int64_t offset, int dim1, int dim2) {
  const int row = axis_of("diagonal", x, dim1), column = axis_of("diagonal", x, dim2);
  FJ_CHECK(row != column, "diagonal: dim1 and dim2 are the same axis (x: {})", x.type().str());
  const CalledAs called("diagonal");
  const std::int64_t rows = x.size(row), columns = x.size(column);
  const std::int64_t top = std::clamp<std::int64_t>(offset < 0 ? -std::max(offset, -rows) : 0, 0, rows);
  const std::int64_t left = std::clamp<std::int64_t>(offset, 0, columns);
  const std::int64_t n = std::min(rows - top, columns - left);
  Tensor square = slice(slice(x, row, top, top + n), column, left, left + n);
  Dims order, shape;
  for (int axis = 0; axis < x.rank(); ++axis) {
    if (axis == row || axis == column) continue;
    order.push_back(axis);
    shape.push_back(x.size(axis));
  }
  order.push_back(row), order.push_back(column);
  shape.push_back(n * n);
  return slice(reshape(permute(square, order), shape), -1, 0, n * n, n + 1);
}

Tensor tril(const Tensor& x, std::int64_t diagonal) { return triangle("tril", x, diagonal, true); }
Tensor triu(const Tensor& x, std::int64_t diagonal) { return triangle("triu", x, diagonal, false); }

Tensor index_select(const Tensor& x, int dim, const Tensor& index) {
  const int axis = axis_of("index_select", x, dim);
  check_defined("index_select", index);
  FJ_CHECK(is_int(index.dtype()) && index.rank() == 1, "index_select: index must be a list of ints (x: {}, index: {})",
           x.type().str(), index.type().str());
  const CalledAs called("index_select");
  Dims shape(static_cast<std::size_t>(x.rank()), 1);
  shape[static_cast<std::size_t>(axis)] = index.size(0);
  const Tensor along = reshape(index, shape);
  shape = dims_of(x);
  shape[static_cast<std::size_t>(axis)] = index.size(0);
  return gather(x, axis, expand(along, shape));
}

Tensor take(const Tensor& x, const Tensor& index) {
  check_defined("take", x), check_defined("take", index);
  FJ_CHECK(is_int(index.dtype()), "take: index must be int (x: {}, index: {})", x.type().str(), index.type().str());
  const CalledAs called("take");
  const Tensor wide = index.to(i64);  // a tensor may have more elements than i32 counts
  const Tensor place = where(wide < 0, wide + x.elements(), wide);
  return reshape(gather(reshape(x, {x.elements()}), 0, reshape(place, {index.elements()})), dims_of(index));
}

Tensor masked_fill(const Tensor& x, const Tensor& mask, Number value) {
  check_defined("masked_fill", x), check_defined("masked_fill", mask);
  FJ_CHECK(mask.dtype() == boolean, "masked_fill: the mask must be bool (x: {}, mask: {})", x.type().str(),
           mask.type().str());
  const CalledAs called("masked_fill");
  return where(mask, value, x);
}

Tensor masked_fill(const Tensor& x, const Tensor& mask, const Tensor& value) {
  check_defined("masked_fill", x), check_defined("masked_fill", mask), check_defined("masked_fill", value);
  FJ_CHECK(mask.dtype() == boolean && value.rank() == 0,
           "masked_fill: the mask must be bool, and the value [] (x: {}, mask: {}, value: {})", x.type().str(),
           mask.type().str(), value.type().str());
  const CalledAs called("masked_fill");
  return where(mask, value.to(x.dtype()), x);
}

Tensor scatter_add(const Tensor& to, int dim, const Tensor& index, const Tensor& from) {
  const int axis = axis_of("scatter_add", to, dim);
  check_defined("scatter_add", index), check_defined("scatter_add", from);
  const std::vector<Tensor> operands = autocast_to_widest({to, from});
  const Tensor &x = operands[0], &src = operands[1];
  bool fits = is_int(index.dtype()) && src.dtype() == x.dtype() && index.rank() == x.rank() && src.rank() == x.rank();
  for (int a = 0; fits && a < x.rank(); ++a)
    fits = index.size(a) <= src.size(a) && (a == axis || index.size(a) <= x.size(a));
  FJ_CHECK(fits,
           "scatter_add: index must be int, no larger than src, nor than x but for dim {}, and src of x's dtype "
           "(x: {}, index: {}, src: {})",
           axis, x.type().str(), index.type().str(), src.type().str());
  const CalledAs called("scatter_add");
  Tensor added = src;
  for (int a = 0; a < x.rank(); ++a)
    if (index.size(a) < src.size(a)) added = slice(added, a, 0, index.size(a));
  return x + record(Op::gather_grad, {added, index}, {{"dim", axis}, {"shape", x.shape().dims()}});
}

}  // namespace fusejit
