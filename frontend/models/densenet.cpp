#include "frontend/models/convolution.h"
#include "frontend/models/initial_weights.h"
#include "fusejit/models.h"

namespace fusejit::models {
namespace {

constexpr std::int64_t kStem = 64, kGrowth = 32;  // channels of the first convolution; that a layer adds
constexpr std::int64_t kBottleneck = 4;           // a layer's 1x1 convolution has so many times what it adds

// Its input, and behind it what a 1x1 and a 3x3 convolution, each after batch-norm and ReLU, make of all of it.
class DenseLayer : public nn::ModuleOf<DenseLayer> {
 public:
  DenseLayer(std::int64_t in, double dropout)
      : norm1_(add("norm1", nn::BatchNorm2d(in))),
        conv1_(add("conv1", conv(in, kBottleneck * kGrowth, 1))),
        norm2_(add("norm2", nn::BatchNorm2d(kBottleneck * kGrowth))),
        conv2_(add("conv2", conv(kBottleneck * kGrowth, kGrowth, 3))),
        dropout_(add("dropout", nn::Dropout(dropout))) {}

  Tensor forward(const Tensor& x) const override {
    const Tensor bottleneck = conv1_(relu(norm1_(x)));
    return concat({x, dropout_(conv2_(relu(norm2_(bottleneck))))}, 1);
  }

 private:
  nn::BatchNorm2d norm1_;
  nn::Conv2d conv1_;
  nn::BatchNorm2d norm2_;
  nn::Conv2d conv2_;
  nn::Dropout dropout_;
};

std::int64_t channels_behind(const std::vector<int>& layers) {
  std::int64_t channels = 2 * kStem;
  for (const int count : layers) channels = channels / 2 + count * kGrowth;
  return channels;
}

// Half the channels at half the size.
nn::Sequential transition(std::int64_t in) {
  nn::Sequential layers;
  layers.push_back("norm", nn::BatchNorm2d(in)).push_back("relu", nn::ReLU());
  layers.push_back("conv", conv(in, in / 2, 1)).push_back("pool", nn::AvgPool2d(2));
  return layers;
}

}  // namespace

DenseNet::DenseNet(const std::vector<int>& layers, std::int64_t classes, double dropout)
    : classifier_(channels_behind(layers), classes) {
  features_.push_back("conv0", conv(3, kStem, 7, 2)).push_back("norm0", nn::BatchNorm2d(kStem));
  features_.push_back("relu0", nn::ReLU()).push_back("pool0", nn::MaxPool2d(3, {.stride = 2, .padding = 1}));
  std::int64_t channels = kStem;
  for (std::size_t i = 0; i < layers.size(); ++i) {
    if (i > 0) {
      features_.push_back("transition" + std::to_string(i), transition(channels));
      channels /= 2;
    }
    nn::Sequential block;
    for (int layer = 1; layer <= layers[i]; ++layer, channels += kGrowth)
      block.push_back("denselayer" + std::to_string(layer), DenseLayer(channels, dropout));
    features_.push_back("denseblock" + std::to_string(i + 1), block);
  }
  features_.push_back("norm5", nn::BatchNorm2d(channels)).push_back("relu5", nn::ReLU());
  add("features", features_);
  add("classifier", classifier_);
  draw_initial_weights(*this, {.fan = Fan::in, .zero_biases = true});
}

Tensor DenseNet::forward(const Tensor& x) const {
  return classifier_(flatten(adaptive_avg_pool2d(features_(x), 1), 1));
}

DenseNet densenet121(std::int64_t classes, double dropout) { return DenseNet({6, 12, 24, 16}, classes, dropout); }

}  // namespace fusejit::models
