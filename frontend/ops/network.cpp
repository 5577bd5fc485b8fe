// The convolutions, products, pools, norms and losses of fusejit/ops.h.
#include <string_view>

#include "frontend/ops/window.h"
#include "frontend/record.h"
#include "fusejit/ops.h"
#include "ir/base/check.h"

namespace fusejit {
namespace {

using ir::Op;
using Cells = std::array<std::int64_t, 4>;

std::array<std::int64_t, 2> cells(Pair p) { return {p.vertical, p.horizontal}; }

// What a caller's numbers add up to, whatever they are. `what` names it in the message.
std::int64_t cells_of(const char* op, const char* what, __int128 count) {
  constexpr std::int64_t kMost = std::int64_t{1} << 40;
  FJ_CHECK(count >= -kMost && count <= kMost, "{}: {} is beyond 2^40 cells", op, what);
  return static_cast<std::int64_t>(count);
}

std::vector<ir::AttrInit> window(Pair stride, const Cells& padding, Pair dilation) {
  const auto s = cells(stride), d = cells(dilation);
  return {{"stride", std::span<const std::int64_t>(s)},
          {"padding", std::span<const std::int64_t>(padding)},
          {"dilation", std::span<const std::int64_t>(d)}};
}

void check_rank4(const char* op, const Tensor& x, const Tensor& w) {
  FJ_CHECK(x.defined() && w.defined(), "{}: an operand is an empty tensor", op);
  FJ_CHECK(x.rank() == 4 && w.rank() == 4, "{}: x and w must have rank 4 (x: {}, w: {})", op, text(x), text(w));
}

// The padding of a pool with ceil_mode: so many cells more behind the image that the last window ends there. As in
// PyTorch, a window that would begin behind the image is none. What is no window at all is left for its row to refuse.
Cells with_last_window(const char* op, const Tensor& x, Pair kernel, Pair stride, Pair dilation, Cells padding) {
  if (!x.defined() || x.rank() != 4) return padding;
  const auto k = cells(kernel), s = cells(stride), d = cells(dilation);
  for (const std::size_t axis : {0, 1}) {
    if (k[axis] < 1 || s[axis] < 1 || d[axis] < 1) continue;
    const __int128 image = static_cast<__int128>(x.shape()[2 + static_cast<int>(axis)]) + padding[axis];
    const __int128 span = static_cast<__int128>(d[axis]) * (k[axis] - 1) + 1, end = image + padding[axis + 2];
    const __int128 room = end - span;
    if (room <= -s[axis]) continue;  // larger than the image by a stride
    __int128 last = room < 0 ? 0 : (room + s[axis] - 1) / s[axis] * s[axis];
    if (last >= image) last -= s[axis];
    if (last + span > end) padding[axis + 2] = cells_of(op, "the padding", last + span - image);
  }
  return padding;
}

// Empty weight and bias stand for the numbers 1 and 0.
Input or_number(const Tensor& t, int number) { return t.defined() ? Input(t) : Input(Number(number)); }

}  // namespace

std::array<std::int64_t, 4> padding_of(const char* op, const Padding& padding, Pair kernel, Pair stride,
                                       Pair dilation) {
  if (!padding.same) return padding.cells;
  FJ_CHECK(stride.vertical == 1 && stride.horizontal == 1, "{}: padding \"same\" needs stride 1, the stride is [{},{}]",
           op, stride.vertical, stride.horizontal);
  const auto span = [op](std::int64_t dilation, std::int64_t kernel) {
    return cells_of(op, "the dilated window", static_cast<__int128>(dilation) * (static_cast<__int128>(kernel) - 1));
  };
  const std::int64_t v = span(dilation.vertical, kernel.vertical), h = span(dilation.horizontal, kernel.horizontal);
  return {v / 2, h / 2, v - v / 2, h - h / 2};
}

Padding::Padding(const char* word) {
  const std::string_view w(word ? word : "");
  FJ_CHECK(w == "same" || w == "valid", "padding '{}' is not known (same, valid, or numbers)", w);
  same = w == "same";
}

Tensor conv2d(const Tensor& x, const Tensor& w, const ConvOptions& options) {
  check_rank4("conv2d", x, w);
  const Pair kernel(w.shape()[2], w.shape()[3]);
  auto attrs = window(options.stride, padding_of("conv2d", options.padding, kernel, options.stride, options.dilation),
                      options.dilation);
  attrs.emplace_back("groups", options.groups);
  return record(Op::conv2d, {x, w}, std::move(attrs));
}

Tensor conv2d(const Tensor& x, const Tensor& w, const Tensor& bias, const ConvOptions& options) {
  const Tensor y = conv2d(x, w, options);
  return bias.defined() ? bias_add(y, bias) : y;
}

Tensor conv_transpose2d(const Tensor& dy, const Tensor& w, const ConvOptions& options, Pair output_padding) {
  check_rank4("conv_transpose2d", dy, w);
  const Pair kernel(w.shape()[2], w.shape()[3]);
  const Cells padding = padding_of("conv_transpose2d", options.padding, kernel, options.stride, options.dilation);
  const auto extent = [](__int128 p, std::int64_t stride, __int128 low, std::int64_t high, __int128 dilation,
                         std::int64_t k, std::int64_t extra) {
    return cells_of("conv_transpose2d", "the result", (p - 1) * stride - (low + high) + dilation * (k - 1) + 1 + extra);
  };
  const std::int64_t size[] = {extent(dy.shape()[2], options.stride.vertical, padding[0], padding[2],
                                      options.dilation.vertical, kernel.vertical, output_padding.vertical),
                               extent(dy.shape()[3], options.stride.horizontal, padding[1], padding[3],
                                      options.dilation.horizontal, kernel.horizontal, output_padding.horizontal)};
  auto attrs = window(options.stride, padding, options.dilation);
  attrs.emplace_back("input_size", std::span<const std::int64_t>(size));
  attrs.emplace_back("groups", options.groups);
  const CalledAs called("conv_transpose2d");
  return record(Op::conv2d_input_grad, {dy, w}, std::move(attrs));
}

Tensor bias_add(const Tensor& x, const Tensor& bias) { return record(Op::bias_add, {x, bias}); }
Tensor matmul(const Tensor& a, const Tensor& b) { return record(Op::matmul, {a, b}); }
Tensor linear(const Tensor& x, const Tensor& w, const Tensor& bias) {
  const CalledAs called("linear");  // the addition too
  const Tensor y = record(Op::linear, {x, w});
  return bias.defined() ? add(y, autocast(ir::AutocastRule::narrow, bias)) : y;
}

Tensor max_pool2d(const Tensor& x, Pair kernel_size, const PoolOptions& options) {
  const Pair stride = options.stride.value_or(kernel_size);
  Cells padding = padding_of("max_pool2d", options.padding, kernel_size, stride, options.dilation);
  if (options.ceil_mode) padding = with_last_window("max_pool2d", x, kernel_size, stride, options.dilation, padding);
  auto attrs = window(stride, padding, options.dilation);
  const auto kernel = cells(kernel_size);
  attrs.emplace_back("kernel_size", std::span<const std::int64_t>(kernel));
  return record(Op::max_pool2d, {x}, std::move(attrs));
}

Tensor avg_pool2d(const Tensor& x, Pair kernel_size, const PoolOptions& options) {
  const Pair stride = options.stride.value_or(kernel_size);
  const auto kernel = cells(kernel_size), steps = cells(stride);
  Cells padding = padding_of("avg_pool2d", options.padding, kernel_size, stride, 1);
  if (options.ceil_mode) {
    const Cells whole = with_last_window("avg_pool2d", x, kernel_size, stride, 1, padding);
    if (whole != padding && options.count_include_pad) {  // of what is outside, the padding alone counts
      const CalledAs called("avg_pool2d");
      const Tensor image =
          padding == Cells{} ? x : pad(x, {0, 0, padding[0], padding[1]}, {0, 0, padding[2], padding[3]});
      const Padding beyond(0, 0, whole[2] - padding[2], whole[3] - padding[3]);
      return avg_pool2d(image, kernel_size, {.stride = stride, .padding = beyond, .count_include_pad = false});
    }
    padding = whole;
  }
  return record(Op::avg_pool2d, {x},
                {{"kernel_size", std::span<const std::int64_t>(kernel)},
                 {"stride", std::span<const std::int64_t>(steps)},
                 {"padding", std::span<const std::int64_t>(padding)},
                 {"count_include_pad", options.count_include_pad}});
}

Tensor adaptive_avg_pool2d(const Tensor& x, Pair output_size) {
  const CalledAs called("adaptive_avg_pool2d");
  // One cell: the mean of the image, which fuses as any reduction.
  const bool is_mean =
      output_size.vertical == 1 && output_size.horizontal == 1 && x.defined() && x.rank() == 4 && x.elements() > 0;
  if (is_mean) return mean(x, {2, 3}, true);
  const auto size = cells(output_size);
  return record(Op::adaptive_avg_pool2d, {x}, {{"output_size", std::span<const std::int64_t>(size)}});
}

Tensor upsample_nearest2d(const Tensor& x, Pair output_size) {
  const auto size = cells(output_size);
  return record(Op::upsample_nearest2d, {x}, {{"output_size", std::span<const std::int64_t>(size)}});
}

Tensor upsample_bilinear2d(const Tensor& x, Pair output_size, bool align_corners) {
  const auto size = cells(output_size);
  return record(Op::upsample_bilinear2d, {x},
                {{"output_size", std::span<const std::int64_t>(size)}, {"align_corners", align_corners}});
}

Tensor batch_norm(const Tensor& x, const Tensor& mean, const Tensor& var, const Tensor& weight, const Tensor& bias,
                  double eps) {
  return record(Op::batch_norm, {x, mean, var, or_number(weight, 1), or_number(bias, 0)}, {{"eps", eps}});
}
Tensor batch_norm_train(const Tensor& x, const Tensor& weight, const Tensor& bias, const BatchNormOptions& options) {
  if (x.defined() && x.rank() >= 2) {
    __int128 values = x.shape()[0];
    for (int axis = 2; axis < x.rank(); ++axis) values *= x.shape()[axis];
    FJ_CHECK(values > 1, "batch_norm_train: more than 1 value a channel is needed in training (x: {})", text(x));
  }
  return record(Op::batch_norm_train, {x, or_number(weight, 1), or_number(bias, 0)},
                {{"eps", options.eps}, {"correction", options.correction}, {"eps_outside", options.eps_outside}});
}
Tensor layer_norm(const Tensor& x, const Dims& normalized_shape, const Tensor& weight, const Tensor& bias, double eps) {
  return record(Op::layer_norm, {x, or_number(weight, 1), or_number(bias, 0)},
                {{"normalized_shape", std::span<const std::int64_t>(normalized_shape)}, {"eps", eps}});
}
Tensor group_norm(const Tensor& x, std::int64_t num_groups, const Tensor& weight, const Tensor& bias, double eps) {
  return record(Op::group_norm, {x, or_number(weight, 1), or_number(bias, 0)},
                {{"num_groups", num_groups}, {"eps", eps}});
}
Tensor instance_norm(const Tensor& x, const Tensor& weight, const Tensor& bias, double eps) {
  return record(Op::instance_norm, {x, or_number(weight, 1), or_number(bias, 0)}, {{"eps", eps}});
}

Tensor mse_loss(const Tensor& x, const Tensor& target, const std::string& reduction) {
  return record(Op::mse_loss, {x, target}, {{"reduction", std::string_view(reduction)}});
}
Tensor l1_loss(const Tensor& x, const Tensor& target, const std::string& reduction) {
  return record(Op::l1_loss, {x, target}, {{"reduction", std::string_view(reduction)}});
}
Tensor smooth_l1_loss(const Tensor& x, const Tensor& target, const std::string& reduction, double beta) {
  return record(Op::smooth_l1_loss, {x, target}, {{"reduction", std::string_view(reduction)}, {"beta", beta}});
}
Tensor binary_cross_entropy_with_logits(const Tensor& x, const Tensor& target, const std::string& reduction) {
  return record(Op::binary_cross_entropy_with_logits, {x, target}, {{"reduction", std::string_view(reduction)}});
}

}  // namespace fusejit
