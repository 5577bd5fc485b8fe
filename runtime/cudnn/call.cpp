#include "runtime/cudnn/call.h"

#include <fmt/ranges.h>

#include "ir/base/check.h"

namespace fusejit::runtime::cudnn {
namespace {

constexpr std::array<std::string_view, 3> kDirections = {"forward", "input_gradient", "weight_gradient"};
constexpr std::array<std::string_view, kActivations> kActivationNames = {
    "none", "relu", "relu6", "leaky_relu", "elu", "sigmoid", "tanh", "gelu", "gelu_tanh", "silu", "softplus"};
constexpr std::array<std::string_view, 3> kPrologues = {"", " affine>", " affine_relu>"};
constexpr std::array<std::string_view, 4> kMasks = {"", " mask=output", " mask=bits", " mask=recompute"};
constexpr std::array<std::string_view, 5> kSums = {"", " sums=statistics", " sums=bias", " sums=gradient",
                                                   " sums=batch_norm_weights"};
constexpr std::array<std::string_view, 20> kRoles = {
    "x",           "w",           "y",          "scale",          "shift",         "side",
    "bias",        "mask",        "pre_norm",   "mean",           "inverse_std",   "gamma",
    "beta",        "sum",         "second_sum", "coefficient_dy", "coefficient_x", "coefficient_one",
    "output_mean", "output_scale"};

std::int64_t extent(std::int64_t size, std::int64_t before, std::int64_t after, std::int64_t dilation,
                    std::int64_t kernel, std::int64_t stride) {
  return (size + before + after - dilation * (kernel - 1) - 1) / stride + 1;
}

template <typename Enum>
constexpr std::size_t index(Enum value) {
  return static_cast<std::size_t>(value);
}

}  // namespace

std::string_view name(Activation activation) { return kActivationNames[index(activation)]; }
std::string_view name(Role role) { return kRoles[index(role) - 1]; }

std::array<std::int64_t, 4> strides_of(const Shape& shape, Layout layout) {
  if (layout == Layout::nhwc) return {shape[1] * shape[2] * shape[3], 1, shape[3] * shape[1], shape[1]};
  return {shape[1] * shape[2] * shape[3], shape[2] * shape[3], shape[3], 1};
}

Shape ConvolutionCall::y() const {
  return Shape{x[0], w[0], extent(x[2], padding[0], padding[2], dilation[0], w[2], stride[0]),
               extent(x[3], padding[1], padding[3], dilation[1], w[3], stride[1])};
}

Type ConvolutionCall::result() const {
  const Shape shape = direction == Direction::forward ? y() : direction == Direction::input_gradient ? x : w;
  return Type{dtype, shape, layout};
}

std::string ConvolutionCall::str() const {
  std::string text =
      fmt::format("{} {}{}{} x={} w={} stride=[{}] padding=[{}] dilation=[{}] groups={}", kDirections[index(direction)],
                  fusejit::name(dtype), layout == Layout::nhwc ? ":nhwc" : "", kPrologues[index(prologue)], x.str(),
                  w.str(), fmt::join(stride, ","), fmt::join(padding, ","), fmt::join(dilation, ","), groups);
  if (centre) text += " centre";
  if (scale) text += " scale";
  if (side) text += " side";
  if (bias) text += " bias";
  if (activation != Activation::none) text += fmt::format(" {}", name(activation));
  if (activation == Activation::leaky_relu) text += fmt::format("({})", slope);
  text += kMasks[index(mask)];
  text += kSums[index(sums)];
  return text;
}

void ConvolutionCall::check() const {
  FJ_CHECK(x.rank() == 4 && w.rank() == 4, "cudnn: x and w are of rank 4 ({})", str());
  FJ_CHECK(dtype == DType::f32 || dtype == DType::f16 || dtype == DType::bf16, "cudnn: no convolution in {} ({})",
           fusejit::name(dtype), str());
  FJ_CHECK(groups >= 1 && x[1] == w[1] * groups && w[0] % groups == 0,
           "cudnn: w has {} input channels a group, x has {} in {} groups ({})", w[1], x[1], groups, str());
  for (const std::int64_t size : {x[0], x[1], x[2], x[3], w[0], w[1], w[2], w[3]}) {
    FJ_CHECK(size >= 1, "cudnn: an empty tensor ({})", str());
  }
  for (const std::int64_t size : {stride[0], stride[1], dilation[0], dilation[1]}) {
    FJ_CHECK(size >= 1, "cudnn: stride and dilation are at least 1 ({})", str());
  }
  for (const std::int64_t size : padding) FJ_CHECK(size >= 0, "cudnn: padding is at least 0 ({})", str());
  FJ_CHECK(x[2] + padding[0] + padding[2] > dilation[0] * (w[2] - 1) &&
               x[3] + padding[1] + padding[3] > dilation[1] * (w[3] - 1),
           "cudnn: the kernel is larger than the padded input ({})", str());
  const bool forward = direction == Direction::forward;
  const bool gradient = direction == Direction::input_gradient;
  FJ_CHECK(prologue == Prologue::none || !gradient, "cudnn: a prologue acts on x, which this call lacks ({})", str());
  FJ_CHECK(forward || (!scale && !bias && activation == Activation::none && sums != Sums::statistics),
           "cudnn: scale, bias, activation and statistics belong to the forward convolution ({})", str());
  FJ_CHECK(scale || !centre, "cudnn: what is centred is scaled too ({})", str());
  FJ_CHECK(gradient || (mask == Mask::none && (sums == Sums::none || sums == Sums::statistics)),
           "cudnn: mask and gradient sums belong to the input gradient ({})", str());
  FJ_CHECK(direction != Direction::weight_gradient || !side, "cudnn: the weight gradient has no side input ({})",
           str());
}

}  // namespace fusejit::runtime::cudnn
