// Layers that change shapes: pools, Upsample, Flatten; and Identity and the dropouts, which change none.
#pragma once

#include <optional>
#include <string>

#include "fusejit/composed.h"
#include "fusejit/module.h"
#include "fusejit/ops.h"

namespace fusejit::nn {

// max_pool2d() as a layer.
class MaxPool2d : public ModuleOf<MaxPool2d> {
 public:
  explicit MaxPool2d(Pair kernel_size, PoolOptions options = {}) : kernel_size_(kernel_size), options_(options) {}
  Tensor forward(const Tensor& x) const override { return max_pool2d(x, kernel_size_, options_); }

 private:
  Pair kernel_size_;
  PoolOptions options_;
};

// avg_pool2d() as a layer.
class AvgPool2d : public ModuleOf<AvgPool2d> {
 public:
  explicit AvgPool2d(Pair kernel_size, PoolOptions options = {}) : kernel_size_(kernel_size), options_(options) {}
  Tensor forward(const Tensor& x) const override { return avg_pool2d(x, kernel_size_, options_); }

 private:
  Pair kernel_size_;
  PoolOptions options_;
};

// adaptive_avg_pool2d() as a layer.
class AdaptiveAvgPool2d : public ModuleOf<AdaptiveAvgPool2d> {
 public:
  explicit AdaptiveAvgPool2d(Pair output_size) : output_size_(output_size) {}
  Tensor forward(const Tensor& x) const override { return adaptive_avg_pool2d(x, output_size_); }

 private:
  Pair output_size_;
};

// adaptive_max_pool2d() as a layer.
class AdaptiveMaxPool2d : public ModuleOf<AdaptiveMaxPool2d> {
 public:
  explicit AdaptiveMaxPool2d(Pair output_size) : output_size_(output_size) {}
  Tensor forward(const Tensor& x) const override { return adaptive_max_pool2d(x, output_size_); }

 private:
  Pair output_size_;
};

// pixel_shuffle() as a layer: x: [N,C*r*r,H,W] -> [N,C,H*r,W*r], r = upscale_factor.
//   fj::nn::Sequential larger(fj::nn::Conv2d(3, 12, 3, {.padding = 1}), fj::nn::PixelShuffle(2));
class PixelShuffle : public ModuleOf<PixelShuffle> {
 public:
  explicit PixelShuffle(std::int64_t upscale_factor) : factor_(upscale_factor) {}
  Tensor forward(const Tensor& x) const override { return pixel_shuffle(x, factor_); }

 private:
  std::int64_t factor_;
};

// pixel_unshuffle() as a layer, the way back.
class PixelUnshuffle : public ModuleOf<PixelUnshuffle> {
 public:
  explicit PixelUnshuffle(std::int64_t downscale_factor) : factor_(downscale_factor) {}
  Tensor forward(const Tensor& x) const override { return pixel_unshuffle(x, factor_); }

 private:
  std::int64_t factor_;
};

// One factor for both axes, or {vertical, horizontal}.
struct ScaleFactor {
  double vertical, horizontal;
  ScaleFactor(double both) : vertical(both), horizontal(both) {}
  ScaleFactor(double v, double h) : vertical(v), horizontal(h) {}
};
struct UpsampleOptions {
  std::optional<Pair> size = {};                 // of the output
  std::optional<ScaleFactor> scale_factor = {};  // in its place: the input's extents times this
  std::string mode = "nearest";                  // or "bilinear"
  bool align_corners = false;                    // bilinear only
};
// x: [N,C,H,W] -> [N,C,P,Q], as upsample_nearest2d and upsample_bilinear2d. UserError for both or none of size and
// scale_factor, and for a factor that makes no whole extent of this x's, where PyTorch reads other places than for the
// same size.
//   fj::nn::Upsample twice({.scale_factor = 2, .mode = "bilinear"});
class Upsample : public ModuleOf<Upsample> {
 public:
  explicit Upsample(UpsampleOptions options);
  Tensor forward(const Tensor& x) const override;

 private:
  UpsampleOptions options_;
};

// [N,...] -> [N, product of the rest].
class Flatten : public ModuleOf<Flatten> {
 public:
  explicit Flatten(int start_dim = 1, int end_dim = -1) : start_dim_(start_dim), end_dim_(end_dim) {}
  Tensor forward(const Tensor& x) const override { return flatten(x, start_dim_, end_dim_); }

 private:
  int start_dim_, end_dim_;
};

// x as it is.
class Identity : public ModuleOf<Identity> {
 public:
  Tensor forward(const Tensor& x) const override { return x; }
};

// Zeroes with probability p in training and scales the rest by 1/(1-p); identity in evaluation.
class Dropout : public ModuleOf<Dropout> {
 public:
  explicit Dropout(double p = 0.5);
  Tensor forward(const Tensor& x) const override;

 private:
  double p_;
};

// The same for whole channels of x: [N,C,H,W].
class Dropout2d : public ModuleOf<Dropout2d> {
 public:
  explicit Dropout2d(double p = 0.5);
  Tensor forward(const Tensor& x) const override;

 private:
  double p_;
};

}  // namespace fusejit::nn
