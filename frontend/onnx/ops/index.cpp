// Ops that choose elements by their places.
#include <algorithm>

#include "frontend/onnx/call.h"
#include "ir/base/check.h"

namespace fusejit::onnx {
namespace {

using Tensors = std::vector<Tensor>;

// Places below 0 count from the end.
Tensor counted(const Tensor& index, std::int64_t extent) { return where(index < 0, index + extent, index); }

// The places if they are known; checked.
std::optional<Dims> known_places(const Call& c, std::int64_t extent) {
  if (!c.is_known(1)) return std::nullopt;
  Dims places = c.tensor(1).to_vector<std::int64_t>();
  for (std::int64_t& place : places) {
    FJ_CHECK(place >= -extent && place < extent, "place {} is outside an axis of {}", place, extent);
    if (place < 0) place += extent;
  }
  return places;
}

// x at `index` along an axis, which the axes of the index replace.
Tensors gathered(const Call& c) {
  const Tensor x = c.tensor(0), index = c.tensor(1);
  const int axis = axis_of(c.integer("axis", 0), x.rank());
  const std::int64_t extent = x.shape()[axis], count = index.elements();
  FJ_CHECK(is_int(index.dtype()), "places must be integers (indices: {})", index.type().str());
  Dims shape(x.shape().begin(), x.shape().begin() + axis), flat = shape, column(static_cast<std::size_t>(x.rank()), 1);
  shape.insert(shape.end(), index.shape().begin(), index.shape().end());
  flat.push_back(count);
  column[static_cast<std::size_t>(axis)] = count;
  shape.insert(shape.end(), x.shape().begin() + axis + 1, x.shape().end());
  flat.insert(flat.end(), x.shape().begin() + axis + 1, x.shape().end());
  const std::optional<Dims> places = known_places(c, extent);
  const bool is_run = places && !places->empty() &&
                      std::adjacent_find(places->begin(), places->end(),
                                         [](std::int64_t a, std::int64_t b) { return b != a + 1; }) == places->end();
  const Tensor y = is_run ? slice(x, axis, places->front(), places->back() + 1)
                          : gather(x, axis, expand(reshape(counted(index, extent), column), flat));
  return {reshape(y, shape)};
}

Tensors gathered_elements(const Call& c) {
  const Tensor x = c.tensor(0);
  const int axis = axis_of(c.integer("axis", 0), x.rank());
  return {gather(x, axis, counted(c.tensor(1), x.shape()[axis]))};
}

// Operands: places, depth, [off, on].
Tensors one_hot_row(const Call& c) {
  const Tensor index = c.tensor(0), values = c.tensor(2);
  const std::int64_t depth = static_cast<std::int64_t>(c.number_at(1, 0).real);
  FJ_CHECK(values.rank() == 1 && values.shape()[0] == 2, "values must be [off, on] (they are {})", values.type().str());
  const Tensor place = is_int(index.dtype()) ? index : index.to(i64);
  Tensor is_on = one_hot(counted(place, depth), depth, boolean);
  const int rank = is_on.rank(), axis = axis_of(c.integer("axis", -1), rank);
  Dims order;
  for (int i = 0; i < rank - 1; ++i) order.push_back(i);
  order.insert(order.begin() + axis, rank - 1);
  is_on = permute(is_on, order);
  return {where(is_on, slice(values, 0, 1, 2), slice(values, 0, 0, 1))};
}

}  // namespace

std::vector<Row> index_rows() {
  const AttributeRule axis{"axis", Kind::integer};
  return {
      {.op = "Gather", .least = 2, .most = 2, .attributes = {axis}, .mean = gathered},
      {.op = "GatherElements", .least = 2, .most = 2, .attributes = {axis}, .mean = gathered_elements},
      {.op = "OneHot", .least = 3, .most = 3, .attributes = {axis}, .numbers = {1, 2}, .mean = one_hot_row},
  };
}

}  // namespace fusejit::onnx
