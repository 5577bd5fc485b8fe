#include "fusejit/nn/convolution.h"

#include "frontend/nn/initial_values.h"
#include "frontend/nn/padding.h"
#include "frontend/nn/running_statistics.h"
#include "frontend/ops/window.h"
#include "frontend/record.h"
#include "fusejit/grad.h"
#include "ir/base/check.h"

namespace fusejit::nn {
namespace {

ConvOptions conv_options(Pair stride, Padding padding, Pair dilation, std::int64_t groups) {
  return {.stride = stride, .padding = padding, .dilation = dilation, .groups = groups};
}

Dims extents(Pair kernel) { return {kernel.vertical, kernel.horizontal}; }

}  // namespace

Conv1d::Conv1d(std::int64_t in_channels, std::int64_t out_channels, std::int64_t kernel_size, Conv1dOptions options)
    : conv_{.stride = options.stride,
            .padding = options.padding,
            .dilation = options.dilation,
            .groups = options.groups},
      padding_mode_(options.padding_mode),
      weight_(parameter("weight", conv_weight("Conv1d", in_channels, out_channels, {kernel_size}, options.groups))) {
  check_padding_mode("Conv1d", padding_mode_);
  if (!options.bias) return;
  bias_.push_back(parameter("bias", uniform_within(fan_in(weight_.value().shape()), {out_channels})));
}

Tensor Conv1d::forward(const Tensor& x) const {
  const Tensor weight = weight_.value(), bias = or_none(bias_, 0);
  if (padding_mode_ == "zeros") return conv1d(x, weight, bias, conv_);
  FJ_CHECK(x.defined() && x.rank() == 3, "Conv1d: x must be [N,C,L] (x: {})", text(x));
  const Padding1d& ends = conv_.padding;
  const auto cells = padding_of("Conv1d", ends.same ? Padding("same") : Padding(0, ends.before, 0, ends.after),
                                {1, weight.size(2)}, {1, conv_.stride}, {1, conv_.dilation});
  fusejit::Conv1dOptions inside = conv_;
  inside.padding = 0;
  const Tensor row = padded("Conv1d", unsqueeze(x, 2), cells, padding_mode_);  // an image of one row
  return conv1d(squeeze(row, {2}), weight, bias, inside);
}

Conv2d::Conv2d(std::int64_t in_channels, std::int64_t out_channels, Pair kernel_size, Conv2dOptions options)
    : conv_(conv_options(options.stride, options.padding, options.dilation, options.groups)),
      padding_mode_(options.padding_mode),
      weight_(
          parameter("weight", conv_weight("Conv2d", in_channels, out_channels, extents(kernel_size), options.groups))) {
  check_padding_mode("Conv2d", padding_mode_);
  if (!options.bias) return;
  bias_.push_back(parameter("bias", uniform_within(fan_in(weight_.value().shape()), {out_channels})));
}

Tensor Conv2d::forward(const Tensor& x) const {
  const Tensor weight = weight_.value(), bias = or_none(bias_, 0);
  if (padding_mode_ == "zeros") return conv2d(x, weight, bias, conv_);
  ConvOptions inside = conv_;
  inside.padding = 0;
  const Pair kernel(weight.size(2), weight.size(3));
  const auto cells = padding_of("Conv2d", conv_.padding, kernel, conv_.stride, conv_.dilation);
  return conv2d(padded("Conv2d", x, cells, padding_mode_), weight, bias, inside);
}

ConvTranspose2d::ConvTranspose2d(std::int64_t in_channels, std::int64_t out_channels, Pair kernel_size,
                                 ConvTranspose2dOptions options)
    : conv_(conv_options(options.stride, options.padding, options.dilation, options.groups)),
      output_padding_(options.output_padding),
      weight_(parameter("weight", conv_weight("ConvTranspose2d", in_channels, out_channels, extents(kernel_size),
                                              options.groups, true))) {
  FJ_CHECK(output_padding_.vertical >= 0 && output_padding_.vertical < options.stride.vertical &&
               output_padding_.horizontal >= 0 && output_padding_.horizontal < options.stride.horizontal,
           "ConvTranspose2d: output_padding [{},{}] must be less than the stride [{},{}], and not negative",
           output_padding_.vertical, output_padding_.horizontal, options.stride.vertical, options.stride.horizontal);
  if (!options.bias) return;
  bias_.push_back(parameter("bias", uniform_within(fan_in(weight_.value().shape()), {out_channels})));
}

Tensor ConvTranspose2d::forward(const Tensor& x) const {
  const Tensor weight = weight_.value();
  FJ_CHECK(x.defined() && x.rank() == 4 && x.shape()[1] == weight.shape()[0],
           "ConvTranspose2d: x must be [N,{},H,W] (x: {})", weight.shape()[0], text(x));
  const Tensor y = conv_transpose2d(x, weight, conv_, output_padding_);
  return bias_.empty() ? y : bias_add(y, bias_[0].value());
}

ConvBatchNorm2d::ConvBatchNorm2d(std::int64_t in_channels, std::int64_t out_channels, Pair kernel_size,
                                 ConvBatchNorm2dOptions options)
    : conv_(conv_options(options.stride, options.padding, options.dilation, options.groups)),
      options_(options),
      weight_(parameter(
          "weight", conv_weight("ConvBatchNorm2d", in_channels, out_channels, extents(kernel_size), options.groups))) {
  FJ_CHECK(!options.track_running_stats || !(options.unbiased || options.eps_outside),
           "ConvBatchNorm2d: unbiased and eps_outside normalise by the batch's own statistics only, set "
           "track_running_stats to false");
  if (options.affine)
    affine_ = {parameter("gamma", filled({out_channels}, 1)), parameter("beta", filled({out_channels}, 0))};
  if (options.track_running_stats) {
    running_ = {state("running_mean", filled({out_channels}, 0)), state("running_var", filled({out_channels}, 1))};
  }
}

Tensor ConvBatchNorm2d::forward(const Tensor& x) const {
  const Tensor weight = weight_.value();
  if (!is_training() && !running_.empty()) {
    return batch_norm(conv2d(x, weight, conv_), running_[0].value(), running_[1].value(), or_none(affine_, 0),
                      or_none(affine_, 1), options_.eps);
  }
  const BatchNormOptions norm{options_.eps, options_.unbiased ? 1 : 0, options_.eps_outside};
  // inputs: x, weight and, if affine, gamma and beta.
  const auto layer = [conv = conv_, norm](const std::vector<Tensor>& in) {
    const Tensor y = conv2d(in[0], in[1], conv);
    return std::pair(y, batch_norm_train(y, in.size() > 2 ? in[2] : Tensor(), in.size() > 2 ? in[3] : Tensor(), norm));
  };
  const auto statistics = [this](const Tensor& y) {
    if (is_training() && !running_.empty()) update_running(running_, y, options_.momentum);
  };
  std::vector<Tensor> inputs{x, weight};
  for (const Parameter& p : affine_) inputs.push_back(p.value());
  if (!options_.save_only_input) {
    const auto [y, z] = layer(inputs);
    statistics(y);
    return z;
  }
  const TensorFunction fused = custom_gradient(
      [&](const std::vector<Tensor>& in) {
        const auto [y, z] = layer(in);
        statistics(y);
        return Saved{z, in};
      },
      [layer](const std::vector<Tensor>& saved, const Tensor& g) { return grad({layer(saved).second}, {g}, saved); });
  return fused(inputs);
}

}  // namespace fusejit::nn
