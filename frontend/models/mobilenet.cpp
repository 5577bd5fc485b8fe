#include "frontend/models/initial_weights.h"
#include "fusejit/models.h"

namespace fusejit::models {
namespace {

constexpr std::int64_t kFirst = 32, kLast = 1280;  // channels of the first and of the last convolution

// Blocks of one width: expansion t, output channels c, n of them, the first with stride s (the paper's table 2).
struct Stage {
  std::int64_t expansion, channels;
  int blocks, stride;
};
constexpr Stage kStages[] = {{1, 16, 1, 1}, {6, 24, 2, 2},  {6, 32, 3, 2}, {6, 64, 4, 2},
                             {6, 96, 3, 1}, {6, 160, 3, 2}, {6, 320, 1, 1}};

nn::Sequential conv_norm_relu6(std::int64_t in, std::int64_t out, int kernel, int stride, std::int64_t groups = 1) {
  const nn::Conv2dOptions options{.stride = stride, .padding = kernel / 2, .groups = groups, .bias = false};
  return nn::Sequential(nn::Conv2d(in, out, kernel, options), nn::BatchNorm2d(out), nn::ReLU6());
}

// 1x1 to more channels, 3x3 on each channel by itself, 1x1 to few without activation; added to the input where the
// shapes are equal.
class InvertedResidual : public nn::ModuleOf<InvertedResidual> {
 public:
  InvertedResidual(std::int64_t in, std::int64_t out, int stride, std::int64_t expansion)
      : adds_input_(stride == 1 && in == out) {
    const std::int64_t inner = in * expansion;
    if (expansion != 1) conv_.push_back(conv_norm_relu6(in, inner, 1, 1));
    conv_.push_back(conv_norm_relu6(inner, inner, 3, stride, inner));
    conv_.push_back(nn::Conv2d(inner, out, 1, {.bias = false}));
    conv_.push_back(nn::BatchNorm2d(out));
    add("conv", conv_);
  }

  Tensor forward(const Tensor& x) const override { return adds_input_ ? x + conv_(x) : conv_(x); }

 private:
  bool adds_input_;
  nn::Sequential conv_;
};

}  // namespace

MobileNetV2::MobileNetV2(std::int64_t classes, double dropout)
    : classifier_(nn::Dropout(dropout), nn::Linear(kLast, classes)) {
  features_.push_back(conv_norm_relu6(3, kFirst, 3, 2));
  std::int64_t in = kFirst;
  for (const Stage& stage : kStages) {
    for (int block = 0; block < stage.blocks; ++block) {
      features_.push_back(InvertedResidual(in, stage.channels, block == 0 ? stage.stride : 1, stage.expansion));
      in = stage.channels;
    }
  }
  features_.push_back(conv_norm_relu6(in, kLast, 1, 1));
  add("features", features_), add("classifier", classifier_);
  draw_initial_weights(*this, {.fan = Fan::out, .matrices = 0.01, .zero_biases = true});
}

Tensor MobileNetV2::forward(const Tensor& x) const {
  return classifier_(flatten(adaptive_avg_pool2d(features_(x), 1), 1));
}

MobileNetV2 mobilenet_v2(std::int64_t classes, double dropout) { return MobileNetV2(classes, dropout); }

}  // namespace fusejit::models
