// The attributes that convolutions and pools share, for images of one or two axes: those of one are images of one row.
#pragma once

#include "frontend/onnx/call.h"

namespace fusejit::onnx {

// Pads, strides and dilations by axis: vertical, horizontal.
struct Window {
  std::int64_t kernel[2] = {1, 1}, stride[2] = {1, 1}, dilation[2] = {1, 1};
  std::int64_t low[2] = {0, 0}, high[2] = {0, 0};

  // Cells that the window covers along an axis.
  std::int64_t span(int axis) const { return dilation[axis] * (kernel[axis] - 1) + 1; }
  Pair kernels() const { return {kernel[0], kernel[1]}; }
  Pair strides() const { return {stride[0], stride[1]}; }
  Pair dilations() const { return {dilation[0], dilation[1]}; }
  Padding padding() const { return {low[0], low[1], high[0], high[1]}; }
};

// The rules of the attributes that window_of() reads.
std::vector<AttributeRule> window_attributes(std::vector<AttributeRule> more);

// [N,C,W] as [N,C,1,W]; [N,C,H,W] as it is; UserError for others.
Tensor as_image(const Tensor& x);
// Back, as x was.
Tensor as_before(const Tensor& image, const Tensor& x);

// The node's attributes for this image. `kernel`: the extents that a weight says, [H,W]; without, the attribute's.
// Where auto_pad asks for it, pads are such that an axis of n cells gives ceil(n/stride).
Window window_of(const Call& c, const Tensor& image, const std::int64_t* kernel);

}  // namespace fusejit::onnx
