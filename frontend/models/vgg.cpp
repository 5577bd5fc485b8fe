#include <algorithm>

#include "frontend/models/initial_weights.h"
#include "fusejit/models.h"

namespace fusejit::models {
namespace {

constexpr std::int64_t kFirstStage = 64, kMost = 512;  // channels of the first stage, and of a stage at most
constexpr std::int64_t kSide = 7;                      // of the images that the classifier reads

}  // namespace

VGG::VGG(const std::vector<int>& convolutions, std::int64_t classes, VGGOptions options) {
  std::int64_t in = 3, width = kFirstStage;
  for (const int count : convolutions) {
    for (int i = 0; i < count; ++i, in = width) {
      features_.push_back(nn::Conv2d(in, width, 3, {.padding = 1}));
      if (options.batch_norm) features_.push_back(nn::BatchNorm2d(width));
      features_.push_back(nn::ReLU());
    }
    features_.push_back(nn::MaxPool2d(2));
    width = std::min(2 * width, kMost);
  }
  const std::int64_t hidden = options.hidden;
  const nn::Dropout dropout(options.dropout);
  classifier_ = nn::Sequential(nn::Linear(in * kSide * kSide, hidden), nn::ReLU(), dropout, nn::Linear(hidden, hidden),
                               nn::ReLU(), dropout, nn::Linear(hidden, classes));
  add("features", features_), add("classifier", classifier_);
  draw_initial_weights(*this, {.fan = Fan::out, .matrices = 0.01, .zero_biases = true});
}

Tensor VGG::forward(const Tensor& x) const {
  return classifier_(flatten(adaptive_avg_pool2d(features_(x), {kSide, kSide}), 1));
}

VGG vgg16(std::int64_t classes, double dropout) { return VGG({2, 2, 3, 3, 3}, classes, {.dropout = dropout}); }
VGG vgg16_bn(std::int64_t classes, double dropout) {
  return VGG({2, 2, 3, 3, 3}, classes, {.dropout = dropout, .batch_norm = true});
}

}  // namespace fusejit::models
