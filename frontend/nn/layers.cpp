#include <cmath>

#include "frontend/nn/shapes_only.h"
#include "frontend/random.h"
#include "frontend/record.h"
#include "fusejit/grad.h"
#include "fusejit/nn.h"
#include "ir/base/check.h"

namespace fusejit::nn {
namespace {

// PyTorch's kaiming_uniform with a = sqrt(5): the bound comes out as 1/sqrt(fan_in).
Tensor uniform_within(std::int64_t fan_in, const Shape& shape) {
  if (ShapesOnly::is_on()) return without_value({f32, shape, Layout::standard});
  return from_host(uniform_values(shape.elements(), 1 / std::sqrt(static_cast<double>(fan_in))), shape);
}

Tensor filled(std::int64_t count, float value) {
  return from_host(std::vector<float>(static_cast<std::size_t>(count), value), {count});
}

Tensor conv_weight(const char* layer, std::int64_t in, std::int64_t out, Pair kernel, std::int64_t groups) {
  FJ_CHECK(in >= 1 && out >= 1 && groups >= 1 && in % groups == 0 && out % groups == 0,
           "{}: {} input and {} output channels do not divide into {} groups", layer, in, out, groups);
  FJ_CHECK(kernel.vertical >= 1 && kernel.horizontal >= 1, "{}: the kernel [{},{}] must have at least one cell", layer,
           kernel.vertical, kernel.horizontal);
  const std::int64_t per_group = in / groups;
  return uniform_within(per_group * kernel.vertical * kernel.horizontal,
                        {out, per_group, kernel.vertical, kernel.horizontal});
}

Tensor or_none(const std::vector<Parameter>& parameters, std::size_t i) {
  return i < parameters.size() ? parameters[i].value() : Tensor();
}

void check_channels(const char* layer, const Tensor& x, std::int64_t channels) {
  FJ_CHECK(x.defined() && x.rank() == 4 && x.shape()[1] == channels, "{}: x must be [N,{},H,W] (x: {})", layer,
           channels, x.defined() ? x.type().str() : "empty");
}

// running*(1-m) + batch*m, the variance with n - 1. The factors are attributes of the layer, not arguments of the
// trace.
void update_running(const std::vector<Parameter>& running, const Tensor& x, double momentum) {
  const CalledAs called("batch_norm_train");
  const Tensor wide = x.dtype() == f64 ? x : x.to(f32);
  const Tensor batch[] = {mean(wide, {0, 2, 3}), var(wide, {0, 2, 3}, 1)};
  for (std::size_t i = 0; i < 2; ++i) {
    const Tensor kept = record(ir::Op::mul, {running[i].value(), Number(1 - momentum)});
    const Tensor added = record(ir::Op::mul, {batch[i].to(kept.dtype()), Number(momentum)});
    Tensor next = kept + added;
    next.requires_grad(false);
    running[i].set(next);
  }
}

ConvOptions conv_options(Pair stride, Padding padding, Pair dilation, std::int64_t groups) {
  return {.stride = stride, .padding = padding, .dilation = dilation, .groups = groups};
}

}  // namespace

Conv2d::Conv2d(std::int64_t in_channels, std::int64_t out_channels, Pair kernel_size, Conv2dOptions options)
    : conv_(conv_options(options.stride, options.padding, options.dilation, options.groups)),
      weight_(parameter("weight", conv_weight("Conv2d", in_channels, out_channels, kernel_size, options.groups))) {
  if (!options.bias) return;
  const std::int64_t fan_in = in_channels / options.groups * kernel_size.vertical * kernel_size.horizontal;
  bias_.push_back(parameter("bias", uniform_within(fan_in, {out_channels})));
}

Tensor Conv2d::forward(const Tensor& x) { return conv2d(x, weight_.value(), or_none(bias_, 0), conv_); }

Linear::Linear(std::int64_t in_features, std::int64_t out_features, bool bias)
    : weight_(parameter("weight", uniform_within(in_features, {out_features, in_features}))) {
  if (bias) bias_.push_back(parameter("bias", uniform_within(in_features, {out_features})));
}

Tensor Linear::forward(const Tensor& x) { return linear(x, weight_.value(), or_none(bias_, 0)); }

BatchNorm2d::BatchNorm2d(std::int64_t channels, BatchNorm2dOptions options) : options_(options) {
  FJ_CHECK(channels >= 1, "BatchNorm2d: {} channels, there must be at least one", channels);
  if (options.affine) affine_ = {parameter("weight", filled(channels, 1)), parameter("bias", filled(channels, 0))};
  if (options.track_running_stats) {
    running_ = {state("running_mean", filled(channels, 0)), state("running_var", filled(channels, 1))};
  }
}

Tensor BatchNorm2d::forward(const Tensor& x) {
  if (const auto& known = affine_.empty() ? running_ : affine_; !known.empty())
    check_channels("BatchNorm2d", x, known[0].value().shape()[0]);
  const Tensor weight = or_none(affine_, 0), bias = or_none(affine_, 1);
  if (!is_training() && !running_.empty()) {
    return batch_norm(x, running_[0].value(), running_[1].value(), weight, bias, options_.eps);
  }
  const Tensor y = batch_norm_train(x, weight, bias, {.eps = options_.eps});
  if (is_training() && !running_.empty()) update_running(running_, x, options_.momentum);
  return y;
}

ConvBatchNorm2d::ConvBatchNorm2d(std::int64_t in_channels, std::int64_t out_channels, Pair kernel_size,
                                 ConvBatchNorm2dOptions options)
    : conv_(conv_options(options.stride, options.padding, options.dilation, options.groups)),
      options_(options),
      weight_(
          parameter("weight", conv_weight("ConvBatchNorm2d", in_channels, out_channels, kernel_size, options.groups))) {
  FJ_CHECK(!options.track_running_stats || !(options.unbiased || options.eps_outside),
           "ConvBatchNorm2d: unbiased and eps_outside normalise by the batch's own statistics only, set "
           "track_running_stats to false");
  if (options.affine)
    affine_ = {parameter("gamma", filled(out_channels, 1)), parameter("beta", filled(out_channels, 0))};
  if (options.track_running_stats) {
    running_ = {state("running_mean", filled(out_channels, 0)), state("running_var", filled(out_channels, 1))};
  }
}

Tensor ConvBatchNorm2d::forward(const Tensor& x) {
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

Dropout::Dropout(double p) : p_(p) { FJ_CHECK(p >= 0 && p <= 1, "Dropout: p is {}, it must lie between 0 and 1", p); }
Tensor Dropout::forward(const Tensor& x) { return is_training() && p_ > 0 ? dropout(x, p_) : x; }

Sequential& Sequential::push_back(const Module& module) { return push_back(std::to_string(modules_.size()), module); }

Sequential& Sequential::push_back(const std::string& name, const Module& module) {
  std::shared_ptr<Module> shared = module.share();
  add_child(name, *shared);
  modules_.push_back(std::move(shared));
  return *this;
}

Tensor Sequential::forward(const Tensor& x) {
  Tensor y = x;
  for (const std::shared_ptr<Module>& module : modules_) y = (*module)(y);
  return y;
}

}  // namespace fusejit::nn
