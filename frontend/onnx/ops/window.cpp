#include "frontend/onnx/ops/window.h"

#include <algorithm>

#include "ir/base/check.h"

namespace fusejit::onnx {
namespace {

// One number for each axis of the image, into the last places of `to`.
void set(std::int64_t (&to)[2], const char* what, const Dims& given, std::size_t axes, std::int64_t least) {
  if (given.empty()) return;
  constexpr std::int64_t kMost = std::int64_t{1} << 24;
  FJ_CHECK(given.size() == axes, "{} has {} numbers for {} axes", what, given.size(), axes);
  for (std::size_t i = 0; i < axes; ++i) {
    FJ_CHECK(given[i] >= least && given[i] <= kMost, "{} has the number {}, {} to {} are understood", what, given[i],
             least, kMost);
    to[2 - axes + i] = given[i];
  }
}

}  // namespace

std::vector<AttributeRule> window_attributes(std::vector<AttributeRule> more) {
  more.insert(more.begin(), {{"auto_pad", Kind::text, "NOTSET|VALID|SAME_UPPER|SAME_LOWER"},
                             {"dilations", Kind::integers},
                             {"kernel_shape", Kind::integers},
                             {"pads", Kind::integers},
                             {"strides", Kind::integers}});
  return more;
}

Tensor as_image(const Tensor& x) {
  FJ_CHECK(x.rank() == 3 || x.rank() == 4, "images of one or two axes are understood (x: {})", x.type().str());
  return x.rank() == 3 ? unsqueeze(x, 2) : x;
}

Tensor as_before(const Tensor& image, const Tensor& x) { return x.rank() == 3 ? squeeze(image, {2}) : image; }

Window window_of(const Call& c, const Tensor& image, const std::int64_t* kernel) {
  const auto axes = static_cast<std::size_t>(c.tensor(0).rank() - 2);
  Window w;
  const Dims kernels = c.integers("kernel_shape"), pads = c.integers("pads");
  set(w.kernel, "kernel_shape", kernels, axes, 1);
  for (int axis = 0; axis < 2 && kernel; ++axis) {
    FJ_CHECK(kernels.empty() || w.kernel[axis] == kernel[axis], "kernel_shape is not that of the weight");
    w.kernel[axis] = kernel[axis];
  }
  FJ_CHECK(kernel || !kernels.empty(), "the attribute 'kernel_shape' is missing");
  set(w.stride, "strides", c.integers("strides"), axes, 1);
  set(w.dilation, "dilations", c.integers("dilations"), axes, 1);
  const std::string automatic = c.text("auto_pad", "NOTSET");
  if (automatic == "NOTSET" && !pads.empty()) {
    FJ_CHECK(pads.size() == 2 * axes, "pads has {} numbers for {} axes", pads.size(), axes);
    const auto middle = pads.begin() + static_cast<std::ptrdiff_t>(axes);
    set(w.low, "pads", {pads.begin(), middle}, axes, 0);
    set(w.high, "pads", {middle, pads.end()}, axes, 0);
  }
  for (int axis = 0; axis < 2 && automatic.starts_with("SAME"); ++axis) {
    const std::int64_t cells = image.shape()[2 + axis], result = (cells + w.stride[axis] - 1) / w.stride[axis];
    const std::int64_t total = std::max<std::int64_t>((result - 1) * w.stride[axis] + w.span(axis) - cells, 0);
    w.low[axis] = automatic == "SAME_UPPER" ? total / 2 : total - total / 2;
    w.high[axis] = total - w.low[axis];
  }
  return w;
}

}  // namespace fusejit::onnx
