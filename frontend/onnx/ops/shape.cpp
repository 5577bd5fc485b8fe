// Ops that give elements another shape, and those that make tensors of shapes.
#include <algorithm>
#include <cmath>
#include <numeric>

#include "frontend/onnx/call.h"
#include "ir/base/check.h"

namespace fusejit::onnx {
namespace {

using Tensors = std::vector<Tensor>;

Dims dims_of(const Tensor& x) { return {x.shape().begin(), x.shape().end()}; }
std::int64_t product(Dims::const_iterator from, Dims::const_iterator to) {
  return std::accumulate(from, to, std::int64_t{1}, std::multiplies<>());
}

Tensors reshaped(const Call& c) {
  const Tensor x = c.tensor(0);
  Dims shape = c.integers_at(1);
  const bool zero_is_zero = c.integer("allowzero", 0) != 0;
  for (std::size_t i = 0; i < shape.size(); ++i) {
    if (shape[i] != 0 || zero_is_zero) continue;
    FJ_CHECK(static_cast<int>(i) < x.rank(), "extent {} is 0, which stands for one that x does not have (x: {})", i,
             x.type().str());
    shape[i] = x.shape()[static_cast<int>(i)];
  }
  return {reshape(x, shape)};
}

Tensors flattened(const Call& c) {
  const Tensor x = c.tensor(0);
  const Dims dims = dims_of(x);
  const std::int64_t given = c.integer("axis", 1), axis = given < 0 ? given + x.rank() : given;
  FJ_CHECK(axis >= 0 && axis <= x.rank(), "axis {} is out of range (x: {})", given, x.type().str());
  const auto middle = dims.begin() + axis;
  return {reshape(x, {product(dims.begin(), middle), product(middle, dims.end())})};
}

Tensors transposed(const Call& c) {
  const Tensor x = c.tensor(0);
  Dims reversed(static_cast<std::size_t>(x.rank()));
  std::iota(reversed.rbegin(), reversed.rend(), 0);
  return {permute(x, c.integers("perm", reversed))};
}

Tensors squeezed(const Call& c) {
  const Tensor x = c.tensor(0);
  const Dims axes = c.integers_at(1);
  return {c.has(1) && axes.empty() ? x : squeeze(x, axes)};
}

Tensors unsqueezed(const Call& c) {
  Tensor x = c.tensor(0);
  Dims axes = c.integers_at(1);
  const int rank = x.rank() + static_cast<int>(axes.size());
  for (std::int64_t& axis : axes) axis = axis_of(axis, rank);
  std::sort(axes.begin(), axes.end());
  FJ_CHECK(std::adjacent_find(axes.begin(), axes.end()) == axes.end(), "an axis is named twice");
  for (const std::int64_t axis : axes) x = unsqueeze(x, static_cast<int>(axis));
  return {x};
}

// Both broadcast: an extent 1 of the shape keeps that of x.
Tensors expanded(const Call& c) {
  const Tensor x = c.tensor(0);
  const Dims shape = c.integers_at(1);
  Shape both;
  FJ_CHECK(broadcast_shapes(x.shape(), Shape(shape), both), "{} and {} do not broadcast", x.shape().str(),
           Shape(shape).str());
  return {expand(x, {both.begin(), both.end()})};
}

Tensors tiled(const Call& c) {
  Tensor x = c.tensor(0);
  const Dims repeats = c.integers_at(1);
  FJ_CHECK(static_cast<int>(repeats.size()) == x.rank(), "{} repeats are given (x: {})", repeats.size(),
           x.type().str());
  for (int axis = 0; axis < x.rank(); ++axis) {
    const std::int64_t times = repeats[static_cast<std::size_t>(axis)];
    if (times == 1) continue;
    Dims with = dims_of(x), joined = with;
    with.insert(with.begin() + axis, times);
    joined[static_cast<std::size_t>(axis)] *= times;
    x = reshape(expand(unsqueeze(x, axis), with), joined);
  }
  return {x};
}

Tensors shape_of(const Call& c) {
  const Dims dims = dims_of(c.tensor(0));
  const auto rank = static_cast<std::int64_t>(dims.size());
  const auto clamped = [&](std::int64_t at) { return std::clamp<std::int64_t>(at < 0 ? at + rank : at, 0, rank); };
  const std::int64_t start = clamped(c.integer("start", 0)), stop = std::max(start, clamped(c.integer("end", rank)));
  return {known_integers({dims.begin() + start, dims.begin() + stop})};
}
Tensors size_of(const Call& c) { return {known_integer(c.tensor(0).elements())}; }

Tensors filled(const Call& c) {
  const Attribute* value = c.find("value");
  const Shape shape(c.integers_at(0));
  if (!value) return {zeros(shape)};
  FJ_CHECK(value->tensor.defined() && value->tensor.elements() == 1, "its value is not one number");
  const DType dtype = value->tensor.dtype();
  return {is_float(dtype) ? full(shape, value->tensor.item<double>(), dtype)
                          : full(shape, value->tensor.item<std::int64_t>(), dtype)};
}

template <class T>
Tensor list(const std::vector<T>& values) {
  return from_host(values, {static_cast<std::int64_t>(values.size())}).to(Device());
}

Tensors constant(const Call& c) {
  if (const Attribute* value = c.find("value")) return {value->tensor};
  if (const Attribute* a = c.find("value_float")) return {scalar(a->number)};
  if (const Attribute* a = c.find("value_int")) return {known_integer(a->integer)};
  if (const Attribute* a = c.find("value_floats"))
    return {list(std::vector<float>(a->numbers.begin(), a->numbers.end()))};
  if (const Attribute* a = c.find("value_ints")) return {known_integers(a->integers)};
  throw UserError("it has no value");
}

// start, start + delta, ... before limit.
Tensors range(const Call& c) {
  const DType dtype = c.tensor(0).dtype();
  const Number start = c.number_at(0, 0), limit = c.number_at(1, 0), delta = c.number_at(2, 1);
  const double count = std::max(0.0, std::ceil((limit.real - start.real) / delta.real));
  FJ_CHECK(count <= 1e9, "it would have {} elements, the limit is 10^9", count);
  return {(arange(static_cast<std::int64_t>(count), dtype) * delta + start).to(dtype)};
}

// [N,C,H,W] in blocks of b times b: [N, C/b^2, H*b, W*b] and back.
Tensors depth_to_space(const Call& c) {
  const Tensor x = c.tensor(0);
  const std::int64_t b = c.integer("blocksize", 0);
  FJ_CHECK(x.rank() == 4 && b >= 1 && b <= 1024 && x.shape()[1] % (b * b) == 0,
           "x does not divide into blocks of {} (x: {})", b, x.type().str());
  const std::int64_t n = x.shape()[0], depth = x.shape()[1] / (b * b), h = x.shape()[2], w = x.shape()[3];
  const Tensor blocks = c.text("mode", "DCR") == "DCR"
                            ? permute(reshape(x, {n, b, b, depth, h, w}), {0, 3, 4, 1, 5, 2})
                            : permute(reshape(x, {n, depth, b, b, h, w}), {0, 1, 4, 2, 5, 3});
  return {reshape(blocks, {n, depth, h * b, w * b})};
}

Tensors space_to_depth(const Call& c) {
  const Tensor x = c.tensor(0);
  const std::int64_t b = c.integer("blocksize", 0);
  FJ_CHECK(x.rank() == 4 && b >= 1 && b <= 1024 && x.shape()[2] % b == 0 && x.shape()[3] % b == 0,
           "x does not divide into blocks of {} (x: {})", b, x.type().str());
  const std::int64_t n = x.shape()[0], depth = x.shape()[1], h = x.shape()[2] / b, w = x.shape()[3] / b;
  const Tensor blocks = permute(reshape(x, {n, depth, h, b, w, b}), {0, 3, 5, 1, 2, 4});
  return {reshape(blocks, {n, depth * b * b, h, w})};
}

}  // namespace

std::vector<Row> shape_rows() {
  const AttributeRule axis{"axis", Kind::integer}, block{"blocksize", Kind::integer};
  const std::vector<AttributeRule> values{{"value", Kind::tensor},
                                          {"value_float", Kind::number},
                                          {"value_floats", Kind::numbers},
                                          {"value_int", Kind::integer},
                                          {"value_ints", Kind::integers}};
  return {
      {.op = "Reshape", .until = 13, .least = 2, .most = 2, .mean = reshaped},
      {.op = "Reshape",
       .since = 14,
       .least = 2,
       .most = 2,
       .attributes = {{"allowzero", Kind::integer, "0|1"}},
       .mean = reshaped},
      {.op = "Flatten", .attributes = {axis}, .mean = flattened},
      {.op = "Transpose", .attributes = {{"perm", Kind::integers}}, .mean = transposed},
      {.op = "Squeeze", .most = 2, .mean = squeezed},
      {.op = "Unsqueeze", .least = 2, .most = 2, .mean = unsqueezed},
      {.op = "Expand", .least = 2, .most = 2, .mean = expanded},
      {.op = "Tile", .least = 2, .most = 2, .mean = tiled},
      {.op = "Shape", .until = 14, .of_shapes = true, .mean = shape_of},
      {.op = "Shape",
       .since = 15,
       .attributes = {{"start", Kind::integer}, {"end", Kind::integer}},
       .of_shapes = true,
       .mean = shape_of},
      {.op = "Size", .of_shapes = true, .mean = size_of},
      {.op = "Constant", .least = 0, .most = 0, .attributes = values, .mean = constant},
      {.op = "ConstantOfShape", .attributes = {{"value", Kind::tensor}}, .mean = filled},
      {.op = "Range", .least = 3, .most = 3, .numbers = {0, 1, 2}, .mean = range},
      {.op = "DepthToSpace", .attributes = {block, {"mode", Kind::text, "DCR|CRD"}}, .mean = depth_to_space},
      {.op = "SpaceToDepth", .attributes = {block}, .mean = space_to_depth},
  };
}

}  // namespace fusejit::onnx
