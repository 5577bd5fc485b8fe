#include "fusejit/nn/normalization.h"

#include "frontend/nn/initial_values.h"
#include "frontend/nn/running_statistics.h"
#include "frontend/record.h"
#include "ir/base/check.h"

namespace fusejit::nn {

// The factors are attributes of the layer, not arguments of the trace.
void update_running(const std::vector<Parameter>& running, const Tensor& x, double momentum, bool per_image) {
  const CalledAs called(per_image ? "instance_norm" : "batch_norm_train");
  const Tensor wide = x.dtype() == f64 ? x : x.to(f32);
  Dims all{0};  // axes but that of the channels
  for (int axis = 2; axis < x.rank(); ++axis) all.push_back(axis);
  const Dims axes = per_image ? Dims(all.begin() + 1, all.end()) : all;
  const Tensor statistics[] = {mean(wide, all), per_image ? mean(var(wide, axes, 1), {0}) : var(wide, axes, 1)};
  for (std::size_t i = 0; i < 2; ++i) {
    const Tensor kept = record(ir::Op::mul, {running[i].value(), Number(1 - momentum)});
    const Tensor added = record(ir::Op::mul, {statistics[i].to(kept.dtype()), Number(momentum)});
    Tensor next = kept + added;
    next.requires_grad(false);
    running[i].set(next);
  }
}

void check_channels(const char* layer, const Tensor& x, std::int64_t channels) {
  FJ_CHECK(x.defined() && x.rank() == 4 && x.shape()[1] == channels, "{}: x must be [N,{},H,W] (x: {})", layer,
           channels, text(x));
}

namespace {

// By the running statistics in evaluation, where there are some, else by those of x, which update them in training.
Tensor normalised(const Tensor& x, bool training, const std::vector<Parameter>& affine,
                  const std::vector<Parameter>& running, const BatchNorm2dOptions& options) {
  const Tensor weight = or_none(affine, 0), bias = or_none(affine, 1);
  if (!training && !running.empty()) {
    return batch_norm(x, running[0].value(), running[1].value(), weight, bias, options.eps);
  }
  const Tensor y = batch_norm_train(x, weight, bias, {.eps = options.eps});
  if (training && !running.empty()) update_running(running, x, options.momentum);
  return y;
}

}  // namespace

BatchNorm2d::BatchNorm2d(std::int64_t channels, BatchNorm2dOptions options) : options_(options) {
  FJ_CHECK(channels >= 1, "BatchNorm2d: {} channels, there must be at least one", channels);
  if (options.affine) affine_ = {parameter("weight", filled({channels}, 1)), parameter("bias", filled({channels}, 0))};
  if (options.track_running_stats) {
    running_ = {state("running_mean", filled({channels}, 0)), state("running_var", filled({channels}, 1))};
  }
}

Tensor BatchNorm2d::forward(const Tensor& x) const {
  FJ_CHECK(!x.defined() || (x.rank() != 2 && x.rank() != 3),
           "BatchNorm2d: x must be [N,C,H,W]; for [N,C] and [N,C,L] there is BatchNorm1d (x: {})", text(x));
  if (const auto& known = affine_.empty() ? running_ : affine_; !known.empty())
    check_channels("BatchNorm2d", x, known[0].value().shape()[0]);
  return normalised(x, is_training(), affine_, running_, options_);
}

BatchNorm1d::BatchNorm1d(std::int64_t channels, BatchNorm1dOptions options) : options_(options) {
  FJ_CHECK(channels >= 1, "BatchNorm1d: {} channels, there must be at least one", channels);
  if (options.affine) affine_ = {parameter("weight", filled({channels}, 1)), parameter("bias", filled({channels}, 0))};
  if (options.track_running_stats) {
    running_ = {state("running_mean", filled({channels}, 0)), state("running_var", filled({channels}, 1))};
  }
}

Tensor BatchNorm1d::forward(const Tensor& x) const {
  FJ_CHECK(x.defined() && (x.rank() == 2 || x.rank() == 3), "BatchNorm1d: x must be [N,C] or [N,C,L] (x: {})", text(x));
  if (const auto& known = affine_.empty() ? running_ : affine_; !known.empty()) {
    const std::int64_t channels = known[0].value().shape()[0];
    FJ_CHECK(x.shape()[1] == channels, "BatchNorm1d: x must be [N,{0}] or [N,{0},L] (x: {1})", channels, text(x));
  }
  return normalised(x, is_training(), affine_, running_, options_);
}

LayerNorm::LayerNorm(std::int64_t normalized_size, LayerNormOptions options)
    : LayerNorm(Dims{normalized_size}, options) {}

LayerNorm::LayerNorm(const Dims& normalized_shape, LayerNormOptions options)
    : normalized_shape_(normalized_shape), eps_(options.eps) {
  FJ_CHECK(!normalized_shape.empty(), "LayerNorm: normalized_shape has no axes");
  for (const std::int64_t extent : normalized_shape)
    FJ_CHECK(extent >= 1, "LayerNorm: an extent of normalized_shape is {}, it must be at least 1", extent);
  const Shape shape(normalized_shape);
  if (options.elementwise_affine) affine_.push_back(parameter("weight", filled(shape, 1)));
  if (options.elementwise_affine && options.bias) affine_.push_back(parameter("bias", filled(shape, 0)));
}

Tensor LayerNorm::forward(const Tensor& x) const {
  return layer_norm(x, normalized_shape_, or_none(affine_, 0), or_none(affine_, 1), eps_);
}

GroupNorm::GroupNorm(std::int64_t num_groups, std::int64_t channels, GroupNormOptions options)
    : num_groups_(num_groups), channels_(channels), eps_(options.eps) {
  FJ_CHECK(num_groups >= 1 && channels >= 1 && channels % num_groups == 0,
           "GroupNorm: {} channels do not divide into {} groups", channels, num_groups);
  if (options.affine) affine_ = {parameter("weight", filled({channels}, 1)), parameter("bias", filled({channels}, 0))};
}

Tensor GroupNorm::forward(const Tensor& x) const {
  FJ_CHECK(x.defined() && x.rank() >= 2 && x.shape()[1] == channels_, "GroupNorm: x must be [N,{},...] (x: {})",
           channels_, text(x));
  return group_norm(x, num_groups_, or_none(affine_, 0), or_none(affine_, 1), eps_);
}

InstanceNorm2d::InstanceNorm2d(std::int64_t channels, InstanceNorm2dOptions options)
    : channels_(channels), options_(options) {
  FJ_CHECK(channels >= 1, "InstanceNorm2d: {} channels, there must be at least one", channels);
  if (options.affine) affine_ = {parameter("weight", filled({channels}, 1)), parameter("bias", filled({channels}, 0))};
  if (options.track_running_stats) {
    running_ = {state("running_mean", filled({channels}, 0)), state("running_var", filled({channels}, 1))};
  }
}

Tensor InstanceNorm2d::forward(const Tensor& x) const {
  check_channels("InstanceNorm2d", x, channels_);
  const Tensor weight = or_none(affine_, 0), bias = or_none(affine_, 1);
  if (!is_training() && !running_.empty()) {
    return batch_norm(x, running_[0].value(), running_[1].value(), weight, bias, options_.eps);
  }
  const Tensor y = instance_norm(x, weight, bias, options_.eps);
  if (is_training() && !running_.empty()) update_running(running_, x, options_.momentum, true);
  return y;
}

}  // namespace fusejit::nn
