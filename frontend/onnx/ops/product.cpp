// Convolutions and matrix products.
#include <algorithm>

#include "frontend/onnx/call.h"
#include "frontend/onnx/ops/window.h"
#include "ir/base/check.h"

namespace fusejit::onnx {
namespace {

using Tensors = std::vector<Tensor>;

// The weight as that of images of two axes, and its [H,W].
struct Weight {
  Tensor w;
  std::int64_t kernel[2];
};
Weight weight_of(const Call& c) {
  const Tensor x = c.tensor(0), w = c.tensor(1);
  FJ_CHECK(w.rank() == x.rank(), "x and w are of different rank (x: {}, w: {})", x.type().str(), w.type().str());
  const Tensor image = as_image(w);
  return {image, {image.shape()[2], image.shape()[3]}};
}

ConvOptions options_of(const Call& c, const Window& w) {
  return {.stride = w.strides(), .padding = w.padding(), .dilation = w.dilations(), .groups = c.integer("group", 1)};
}

Tensors convolved(const Call& c) {
  const Tensor x = c.tensor(0), image = as_image(x);
  const Weight weight = weight_of(c);
  const Window window = window_of(c, image, weight.kernel);
  return {as_before(conv2d(image, weight.w, c.tensor(2), options_of(c, window)), x)};
}

// The pads follow from the result's extents where those are given, or are x's times the stride.
void set_pads(Window& w, int axis, std::int64_t cells, std::int64_t extra, std::int64_t result, bool is_upper) {
  const std::int64_t total = w.stride[axis] * (cells - 1) + extra + w.span(axis) - result;
  FJ_CHECK(total >= 0, "the result cannot have {} cells along axis {}", result, axis);
  w.low[axis] = is_upper ? total / 2 : total - total / 2;
  w.high[axis] = total - w.low[axis];
}

Tensors convolved_back(const Call& c) {
  const Tensor x = c.tensor(0), image = as_image(x);
  const Weight weight = weight_of(c);
  Window window = window_of(c, image, weight.kernel);
  const auto axes = static_cast<std::size_t>(x.rank() - 2);
  std::int64_t extra[2] = {0, 0};
  const Dims more = c.integers("output_padding"), result = c.integers("output_shape");
  FJ_CHECK((more.empty() || more.size() == axes) && (result.empty() || result.size() == axes),
           "output_padding or output_shape has not one number an axis");
  const std::string automatic = c.text("auto_pad", "NOTSET");
  for (std::size_t i = 0; i < axes; ++i) {
    const int axis = static_cast<int>(2 - axes + i);
    const std::int64_t cells = image.shape()[2 + axis];
    if (!more.empty()) extra[axis] = more[i];
    if (!result.empty()) {
      set_pads(window, axis, cells, extra[axis], result[i], automatic == "SAME_UPPER");
    } else if (automatic.starts_with("SAME")) {
      set_pads(window, axis, cells, extra[axis], cells * window.stride[axis], automatic == "SAME_UPPER");
    }
  }
  const Tensor y = conv_transpose2d(image, weight.w, options_of(c, window), {extra[0], extra[1]});
  return {as_before(c.has(2) ? bias_add(y, c.tensor(2)) : y, x)};
}

// As NumPy's: what has one axis is a row on the left and a column on the right.
Tensors multiplied(const Call& c) {
  const Tensor a = c.tensor(0), b = c.tensor(1);
  FJ_CHECK(a.rank() > 0 && b.rank() > 0, "an operand has no axes (a: {}, b: {})", a.type().str(), b.type().str());
  Tensor y = matmul(a.rank() == 1 ? unsqueeze(a, 0) : a, b.rank() == 1 ? unsqueeze(b, 1) : b);
  if (b.rank() == 1) y = squeeze(y, {-1});
  if (a.rank() == 1) y = squeeze(y, {b.rank() == 1 ? -1 : -2});
  return {y};
}

// alpha*a*b + beta*c, a and b perhaps transposed.
Tensors general_product(const Call& c) {
  const bool is_a_turned = c.integer("transA", 0) != 0, is_b_turned = c.integer("transB", 0) != 0;
  const double alpha = c.number("alpha", 1), beta = c.number("beta", 1);
  const Tensor a = is_a_turned ? transpose(c.tensor(0), 0, 1) : c.tensor(0), b = c.tensor(1), bias = c.tensor(2);
  FJ_CHECK(a.rank() == 2 && b.rank() == 2, "a and b must be matrices (a: {}, b: {})", a.type().str(), b.type().str());
  const bool is_plain = alpha == 1 && bias.defined() && beta == 1 && bias.rank() == 1;
  if (is_b_turned && is_plain && bias.shape()[0] == b.shape()[0]) return {linear(a, b, bias)};
  Tensor y = is_b_turned ? linear(a, b) : matmul(a, b);
  if (alpha != 1) y = y * alpha;
  if (!bias.defined() || beta == 0) return {y};
  Shape both;
  FJ_CHECK(broadcast_shapes(y.shape(), bias.shape(), both) && both == y.shape(),
           "c does not broadcast to the product (c: {}, "
           "a*b: {})",
           bias.type().str(), y.type().str());
  return {y + (beta == 1 ? bias : bias * beta)};
}

}  // namespace

std::vector<Row> product_rows() {
  const AttributeRule group{"group", Kind::integer};
  return {
      {.op = "Conv", .least = 2, .most = 3, .attributes = window_attributes({group}), .mean = convolved},
      {.op = "ConvTranspose",
       .least = 2,
       .most = 3,
       .attributes = window_attributes({group, {"output_padding", Kind::integers}, {"output_shape", Kind::integers}}),
       .mean = convolved_back},
      {.op = "MatMul", .least = 2, .most = 2, .mean = multiplied},
      {.op = "Gemm",
       .least = 2,
       .most = 3,
       .attributes = {{"alpha", Kind::number},
                      {"beta", Kind::number},
                      {"transA", Kind::integer, "0|1"},
                      {"transB", Kind::integer, "0|1"}},
       .mean = general_product},
  };
}

}  // namespace fusejit::onnx
