// Pools over windows and over whole images. With ceil_mode a window may begin at the last cells of an axis and end
// beyond its pads; one that would begin in the pads behind it is none (as in PyTorch, and in ONNX since 1.16).
#include <algorithm>
#include <numeric>

#include "frontend/onnx/call.h"
#include "frontend/onnx/ops/window.h"
#include "ir/base/check.h"

namespace fusejit::onnx {
namespace {

using Tensors = std::vector<Tensor>;

std::int64_t windows(const Window& w, int axis, std::int64_t cells) {
  const std::int64_t room = cells + w.low[axis] + w.high[axis] - w.span(axis);
  FJ_CHECK(room >= 0, "a window of {} cells does not fit axis {} of {}", w.span(axis), axis, cells);
  const std::int64_t count = (room + w.stride[axis] - 1) / w.stride[axis] + 1;
  return (count - 1) * w.stride[axis] >= cells + w.low[axis] ? count - 1 : count;
}

// Cells beyond the pads that ceil_mode needs, added to the pads; returned.
std::int64_t widen(Window& w, int axis, std::int64_t cells) {
  const std::int64_t end = (windows(w, axis, cells) - 1) * w.stride[axis] + w.span(axis);
  const std::int64_t beyond = std::max<std::int64_t>(end - (cells + w.low[axis] + w.high[axis]), 0);
  w.high[axis] += beyond;
  return beyond;
}

bool rounds_up(const Call& c) {
  return c.integer("ceil_mode", 0) != 0 && !c.text("auto_pad", "NOTSET").starts_with("SAME");
}

Tensors max_pooled(const Call& c) {
  const Tensor x = c.tensor(0), image = as_image(x);
  Window w = window_of(c, image, nullptr);
  for (int axis = 0; axis < 2 && rounds_up(c); ++axis) widen(w, axis, image.shape()[2 + axis]);
  const Tensor wide = is_narrow_int(x.dtype()) ? image.to(f32) : image;  // which holds all of them
  const Tensor y =
      max_pool2d(wide, w.kernels(), {.stride = w.strides(), .padding = w.padding(), .dilation = w.dilations()});
  return {as_before(y.to(x.dtype()), x)};
}

// A mean over windows of which those at the end hold fewer cells: kernel/cells by window, for means by kernel.
Tensor corrections(const Window& w, int axis, std::int64_t cells, std::int64_t beyond, const Tensor& like) {
  std::vector<float> factors;
  const std::int64_t end = cells + w.high[axis] - beyond, count = windows(w, axis, cells);
  for (std::int64_t i = 0; i < count; ++i) {
    const std::int64_t first = i * w.stride[axis] - w.low[axis], last = std::min(first + w.kernel[axis], end);
    factors.push_back(static_cast<float>(w.kernel[axis]) / static_cast<float>(last - first));
  }
  Tensor all = from_host(factors, axis == 0 ? Shape{1, 1, count, 1} : Shape{1, 1, 1, count}).to(like.dtype());
  return all.to(like.device());
}

Tensors average_pooled(const Call& c) {
  const Tensor x = c.tensor(0), image = as_image(x);
  const bool counts_pads = c.integer("count_include_pad", 0) != 0;
  Window w = window_of(c, image, nullptr);
  std::int64_t beyond[2] = {0, 0};
  for (int axis = 0; axis < 2 && rounds_up(c); ++axis) beyond[axis] = widen(w, axis, image.shape()[2 + axis]);
  Tensor y =
      avg_pool2d(image, w.kernels(), {.stride = w.strides(), .padding = w.padding(), .count_include_pad = counts_pads});
  for (int axis = 0; axis < 2 && counts_pads; ++axis) {
    if (beyond[axis] > 0) y = y * corrections(w, axis, image.shape()[2 + axis], beyond[axis], y);
  }
  return {as_before(y, x)};
}

Dims image_axes(const Tensor& x) {
  FJ_CHECK(x.rank() >= 3, "x has no image axes (x: {})", x.type().str());
  Dims axes(static_cast<std::size_t>(x.rank() - 2));
  std::iota(axes.begin(), axes.end(), 2);
  return axes;
}

}  // namespace

std::vector<Row> pool_rows() {
  const AttributeRule ceil_mode{"ceil_mode", Kind::integer, "0|1"}, pads{"count_include_pad", Kind::integer, "0|1"};
  // The dilations of averages, which op set 19 has, are understood where they are none.
  std::vector<AttributeRule> average = window_attributes({ceil_mode, pads});
  for (AttributeRule& rule : average) {
    if (std::string_view(rule.name) == "dilations") rule.only = "1";
  }
  return {
      {.op = "MaxPool",
       .attributes = window_attributes({ceil_mode, {"storage_order", Kind::integer, "0"}}),
       .mean = max_pooled},
      {.op = "AveragePool", .attributes = average, .mean = average_pooled},
      {.op = "GlobalAveragePool",
       .mean = [](const Call& c) { return Tensors{mean(c.tensor(0), image_axes(c.tensor(0)), true)}; }},
      {.op = "GlobalMaxPool",
       .mean = [](const Call& c) { return Tensors{amax(c.tensor(0), image_axes(c.tensor(0)), true)}; }},
  };
}

}  // namespace fusejit::onnx
