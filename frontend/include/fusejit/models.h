// Built-in models, so that users, tools and benchmarks name the same ones.
#pragma once

#include <cstdint>

#include "fusejit/nn.h"

namespace fusejit::models {

enum class ConvnetForm : std::uint8_t {
  ordinary,   // convolution and batch-norm keep what they need
  save_input  // each convolution + batch-norm layer keeps only its input
};
// The digits network of PyTorch's tutorial "Fusing Convolution and Batch Norm using Custom Function":
// [N,1,28,28] f32 -> log-probabilities [N,10]. Two 3x3 convolutions with batch-norm (32 and 64 channels) and ReLU,
// 2x2 max-pool, linear 9216 -> 128, dropout 0.5, linear -> 10. Its batch-norm has no affine part and no running
// statistics, divides by n - 1, and adds eps = 1e-3 outside the root.
nn::Sequential convnet(ConvnetForm form = ConvnetForm::ordinary, double dropout = 0.5);

enum class ResNetBlock : std::uint8_t {
  basic,      // two 3x3 convolutions
  bottleneck  // 1x1, 3x3 and 1x1 to four times the channels
};

// ResNet as in torchvision, names of parameters included: [N,3,H,W] f32 -> logits [N,classes]. Four stages of
// blocks of 64, 128, 256, 512 channels; bottlenecks have four times as many at their ends.
class ResNet : public nn::ModuleOf<ResNet> {
 public:
  // blocks: of each of the four stages.
  ResNet(const std::vector<int>& blocks, std::int64_t classes, ResNetBlock block = ResNetBlock::bottleneck);
  Tensor forward(const Tensor& x) override;

 private:
  nn::Conv2d conv1_;
  nn::BatchNorm2d bn1_;
  std::vector<nn::Sequential> layers_;
  nn::Linear fc_;
};
// Basic blocks {2, 2, 2, 2}, and bottlenecks {3, 4, 6, 3}; with torchvision's weights saved as .npz, its results.
ResNet resnet18(std::int64_t classes = 1000);
ResNet resnet50(std::int64_t classes = 1000);

// MobileNet-v2 of width 1 as in torchvision, names of parameters included: [N,3,H,W] f32 -> logits [N,classes].
// Seventeen inverted residuals: 1x1 to six times the channels, 3x3 on each channel by itself, 1x1 back, with ReLU6.
class MobileNetV2 : public nn::ModuleOf<MobileNetV2> {
 public:
  explicit MobileNetV2(std::int64_t classes, double dropout = 0.2);
  Tensor forward(const Tensor& x) override;

 private:
  nn::Sequential features_, classifier_;
};
MobileNetV2 mobilenet_v2(std::int64_t classes = 1000, double dropout = 0.2);

}  // namespace fusejit::models
