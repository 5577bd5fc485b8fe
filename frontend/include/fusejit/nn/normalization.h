// Normalisation layers: y = (x - mean)/sqrt(var + eps)*weight + bias; they differ in what the statistics are over.
// Weights are 1 and biases 0 at first; formulas and rounding are those of docs/ops.md section 6.
#pragma once

#include <vector>

#include "fusejit/module.h"
#include "fusejit/ops.h"

namespace fusejit::nn {

struct BatchNorm2dOptions {
  double eps = 1e-5;
  double momentum = 0.1;  // running = running*(1 - momentum) + batch*momentum
  bool affine = true;
  bool track_running_stats = true;  // false: the batch's own statistics in evaluation too
};
// x: [N,channels,H,W] -> the same, per channel over N, H, W. In training the batch's statistics normalise (variance by
// n) and update the running ones (variance by n - 1). Parameters: weight, bias; state: running_mean, running_var, each
// [channels].
class BatchNorm2d : public ModuleOf<BatchNorm2d> {
 public:
  explicit BatchNorm2d(std::int64_t channels, BatchNorm2dOptions options = {});
  Tensor forward(const Tensor& x) const override;

 private:
  BatchNorm2dOptions options_;
  std::vector<Parameter> affine_;   // weight, bias, or none
  std::vector<Parameter> running_;  // mean, var, or none
};

// The same settings.
using BatchNorm1dOptions = BatchNorm2dOptions;
// The same for x: [N,channels], or sequences [N,channels,L].
//   fj::nn::Sequential mlp(fj::nn::Linear(8, 16), fj::nn::BatchNorm1d(16), fj::nn::ReLU());
class BatchNorm1d : public ModuleOf<BatchNorm1d> {
 public:
  explicit BatchNorm1d(std::int64_t channels, BatchNorm1dOptions options = {});
  Tensor forward(const Tensor& x) const override;

 private:
  BatchNorm2dOptions options_;
  std::vector<Parameter> affine_, running_;
};

struct LayerNormOptions {
  double eps = 1e-5;
  bool elementwise_affine = true;
  bool bias = true;  // with elementwise_affine only
};
// x: [...,normalized_shape...] -> the same, over those last axes. Parameters: weight, bias, of that shape.
//   fj::nn::LayerNorm norm(64);        // over the last axis
//   fj::nn::LayerNorm image({8, 4, 4});  // over the last three
class LayerNorm : public ModuleOf<LayerNorm> {
 public:
  explicit LayerNorm(std::int64_t normalized_size, LayerNormOptions options = {});
  explicit LayerNorm(const Dims& normalized_shape, LayerNormOptions options = {});
  Tensor forward(const Tensor& x) const override;

 private:
  Dims normalized_shape_;
  double eps_;
  std::vector<Parameter> affine_;  // weight, bias, or the first, or none
};

struct GroupNormOptions {
  double eps = 1e-5;
  bool affine = true;
};
// x: [N,channels,...] -> the same, per image and group of channels/num_groups channels. Parameters: weight, bias, each
// [channels].
class GroupNorm : public ModuleOf<GroupNorm> {
 public:
  GroupNorm(std::int64_t num_groups, std::int64_t channels, GroupNormOptions options = {});
  Tensor forward(const Tensor& x) const override;

 private:
  std::int64_t num_groups_, channels_;
  double eps_;
  std::vector<Parameter> affine_;  // weight, bias, or none
};

struct InstanceNorm2dOptions {
  double eps = 1e-5;
  double momentum = 0.1;
  bool affine = false;
  bool track_running_stats = false;  // true: in evaluation the running statistics normalise
};
// x: [N,channels,H,W] -> the same, per image and channel. Running statistics, if there are any, are updated by the mean
// over the images of their own. Parameters: weight, bias, if affine; state: running_mean, running_var, if they are
// tracked.
class InstanceNorm2d : public ModuleOf<InstanceNorm2d> {
 public:
  explicit InstanceNorm2d(std::int64_t channels, InstanceNorm2dOptions options = {});
  Tensor forward(const Tensor& x) const override;

 private:
  std::int64_t channels_;
  InstanceNorm2dOptions options_;
  std::vector<Parameter> affine_, running_;
};

}  // namespace fusejit::nn
