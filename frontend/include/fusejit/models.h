// Built-in models, so that users, tools and benchmarks name the same ones. Those of torchvision have its names of
// parameters, so that load() takes its weights saved as .npz or .safetensors, and its results; parameters are drawn as
// it draws them, from the default generator.
//
//   fj::models::ResNet net = fj::models::resnet34(10);
//   fj::Tensor logits = net.eval()(fj::ones({2, 3, 64, 64}));  // [2,10]
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "fusejit/nn.h"

namespace fusejit::models {

// What the digits network keeps for its backward pass.
enum class ConvnetForm : std::uint8_t {
  ordinary,   // convolution and batch-norm keep what they need
  save_input  // each convolution + batch-norm layer keeps only its input
};
// The digits network of PyTorch's tutorial "Fusing Convolution and Batch Norm using Custom Function":
// [N,1,28,28] f32 -> log-probabilities [N,10]. Two 3x3 convolutions with batch-norm (32 and 64 channels) and ReLU,
// 2x2 max-pool, linear 9216 -> 128, dropout 0.5, linear -> 10. Its batch-norm has no affine part and no running
// statistics, divides by n - 1, and adds eps = 1e-3 outside the root.
nn::Sequential convnet(ConvnetForm form = ConvnetForm::ordinary, double dropout = 0.5);

// What the stages of a ResNet are made of.
enum class ResNetBlock : std::uint8_t {
  basic,      // two 3x3 convolutions
  bottleneck  // 1x1, 3x3 and 1x1 to four times the channels
};

// ResNet as in torchvision: [N,3,H,W] f32 -> logits [N,classes]. Four stages of
// blocks of 64, 128, 256, 512 channels; bottlenecks have four times as many at their ends.
class ResNet : public nn::ModuleOf<ResNet> {
 public:
  // blocks: of each of the four stages.
  ResNet(const std::vector<int>& blocks, std::int64_t classes, ResNetBlock block = ResNetBlock::bottleneck);
  Tensor forward(const Tensor& x) const override;

 private:
  nn::Conv2d conv1_;
  nn::BatchNorm2d bn1_;
  std::vector<nn::Sequential> layers_;
  nn::Linear fc_;
};
ResNet resnet18(std::int64_t classes = 1000);  // basic blocks {2, 2, 2, 2}
ResNet resnet34(std::int64_t classes = 1000);  // basic blocks {3, 4, 6, 3}
ResNet resnet50(std::int64_t classes = 1000);  // bottlenecks {3, 4, 6, 3}

// MobileNet-v2 of width 1 as in torchvision: [N,3,H,W] f32 -> logits [N,classes].
// Seventeen inverted residuals: 1x1 to six times the channels, 3x3 on each channel by itself, 1x1 back, with ReLU6.
class MobileNetV2 : public nn::ModuleOf<MobileNetV2> {
 public:
  explicit MobileNetV2(std::int64_t classes, double dropout = 0.2);
  Tensor forward(const Tensor& x) const override;

 private:
  nn::Sequential features_, classifier_;
};
MobileNetV2 mobilenet_v2(std::int64_t classes = 1000, double dropout = 0.2);  // torchvision's

// VGG as in torchvision: [N,3,H,W] f32 -> logits [N,classes], H and W at least 32. Stages of 3x3 convolutions with bias
// and ReLU (64, 128, 256, 512, 512, ... channels), each with a 2x2 max-pool behind it; 7x7 means; two hidden layers of
// 4096 with dropout.
struct VGGOptions {
  double dropout = 0.5;
  bool batch_norm = false;     // behind each convolution
  std::int64_t hidden = 4096;  // of the hidden layers
};
class VGG : public nn::ModuleOf<VGG> {
 public:
  // convolutions: of each of the stages.
  VGG(const std::vector<int>& convolutions, std::int64_t classes, VGGOptions options = {});
  Tensor forward(const Tensor& x) const override;

 private:
  nn::Sequential features_, classifier_;
};
VGG vgg16(std::int64_t classes = 1000, double dropout = 0.5);     // convolutions {2, 2, 3, 3, 3}
VGG vgg16_bn(std::int64_t classes = 1000, double dropout = 0.5);  // with batch norm

// DenseNet-BC of growth 32 as in torchvision: [N,3,H,W] f32 -> logits [N,classes]. Blocks of layers that each put 32
// channels behind their input (batch-norm, ReLU, 1x1 to 128 channels, batch-norm, ReLU, 3x3), and halve channels and
// size between blocks.
class DenseNet : public nn::ModuleOf<DenseNet> {
 public:
  // layers: of each block. dropout: of what a layer adds.
  DenseNet(const std::vector<int>& layers, std::int64_t classes, double dropout = 0);
  Tensor forward(const Tensor& x) const override;

 private:
  nn::Sequential features_;
  nn::Linear classifier_;
};
DenseNet densenet121(std::int64_t classes = 1000, double dropout = 0);  // layers {6, 12, 24, 16}

// Which of the two networks of its authors.
enum class SqueezeNetVersion : std::uint8_t {
  v1_0,  // the paper's: 7x7 to 96 channels first
  v1_1   // 3x3 to 64 channels first, pools earlier: 2.4 times less work
};
// SqueezeNet as in torchvision: [N,3,H,W] f32 -> logits [N,classes], H and W at least 21 (1.0) or 17 (1.1). Eight fire
// modules: 1x1 to few channels, and of those 1x1 and 3x3 beside each other, each with bias and ReLU; pools of 3x3 by 2
// that round up; dropout, 1x1 to the classes, ReLU and the mean over the image.
class SqueezeNet : public nn::ModuleOf<SqueezeNet> {
 public:
  explicit SqueezeNet(SqueezeNetVersion version, std::int64_t classes = 1000, double dropout = 0.5);
  Tensor forward(const Tensor& x) const override;

 private:
  nn::Sequential features_, classifier_;
};
// Version 1.0.
SqueezeNet squeezenet1_0(std::int64_t classes = 1000, double dropout = 0.5);
// Version 1.1.
SqueezeNet squeezenet1_1(std::int64_t classes = 1000, double dropout = 0.5);

// What doubles the size on the way up and halves the channels.
enum class UNetUp : std::uint8_t {
  transpose,  // a transposed 2x2 convolution with stride 2: up<i>.weight
  bilinear    // bilinear resizing and a 3x3 convolution: up<i>.1.weight. No checkerboards.
};
struct UNetOptions {
  std::int64_t channels = 3;  // of the images
  std::int64_t width = 64;    // channels of the first level; each has twice those of the one above
  int depth = 4;              // levels above the bottom
  UNetUp up = UNetUp::transpose;
};
// The U-Net of Ronneberger, Fischer and Brox 2015, padded and with batch norm as is usual since:
// [N,channels,H,W] f32 -> logits [N,classes,H,W], H and W multiples of 2^depth. down<i>, bottom and merge<i> are twice
// a 3x3 convolution without bias, batch norm and ReLU; level i goes down by a 2x2 max-pool, comes up by up<i>, and
// merge<i> reads what was on the way down in front of what comes up; head is a 1x1 convolution. torchvision has none:
// tests/reference/recording/networks.py has its twin in PyTorch, with the same names. Initial weights are PyTorch's.
//
//   fj::models::UNet net = fj::models::unet(2, {.channels = 1, .width = 8, .depth = 2});
//   fj::Tensor logits = net(fj::ones({2, 1, 16, 24}));  // [2,2,16,24]
class UNet : public nn::ModuleOf<UNet> {
 public:
  explicit UNet(std::int64_t classes, const UNetOptions& options = {});
  Tensor forward(const Tensor& x) const override;

 private:
  std::vector<nn::Sequential> down_, merge_;
  nn::Sequential bottom_;
  std::vector<std::shared_ptr<nn::Module>> up_;
  nn::Conv2d head_;
};
// [N,channels,H,W] f32 -> a score of each class for each pixel, [N,classes,H,W].
UNet unet(std::int64_t classes = 21, const UNetOptions& options = {});

}  // namespace fusejit::models
