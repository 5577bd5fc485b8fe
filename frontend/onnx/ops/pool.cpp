// Pools over windows and over whole images. With ceil_mode a window may begin at the last cells of an axis and end
// beyond its pads; one that would begin in the pads behind it is none (as in PyTorch, and in ONNX since 1.16).
#include <numeric>

#include "frontend/onnx/call.h"
#include "frontend/onnx/ops/window.h"
#include "ir/base/check.h"

namespace fusejit::onnx {
namespace {

using Tensors = std::vector<Tensor>;

bool rounds_up(const Call& c) {
  return c.integer("ceil_mode", 0) != 0 && !c.text("auto_pad", "NOTSET").starts_with("SAME");
}

Tensors max_pooled(const Call& c) {
  const Tensor x = c.tensor(0), image = as_image(x);
  const Window w = window_of(c, image, nullptr);
  const Tensor wide = is_narrow_int(x.dtype()) ? image.to(f32) : image;  // which holds all of them
  const Tensor y =
      max_pool2d(wide, w.kernels(),
                 {.stride = w.strides(), .padding = w.padding(), .dilation = w.dilations(), .ceil_mode = rounds_up(c)});
  return {as_before(y.to(x.dtype()), x)};
}

Tensors average_pooled(const Call& c) {
  const Tensor x = c.tensor(0), image = as_image(x);
  const Window w = window_of(c, image, nullptr);
  const Tensor y = avg_pool2d(image, w.kernels(),
                              {.stride = w.strides(),
                               .padding = w.padding(),
                               .ceil_mode = rounds_up(c),
                               .count_include_pad = c.integer("count_include_pad", 0) != 0});
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
