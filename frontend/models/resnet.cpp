#include "frontend/models/convolution.h"
#include "frontend/models/initial_weights.h"
#include "fusejit/models.h"

namespace fusejit::models {
namespace {

constexpr std::int64_t kExpansion = 4;

// Makes the outputs of a block's shortcut those of its branch, where they are not.
nn::Sequential projection(std::int64_t in, std::int64_t out, int stride) {
  if (stride == 1 && in == out) return {};
  return nn::Sequential(conv(in, out, 1, stride), nn::BatchNorm2d(out));
}

// 3x3 (with the stride), 3x3, each with batch-norm; added to the input, or to its projection.
class BasicBlock : public nn::ModuleOf<BasicBlock> {
 public:
  BasicBlock(std::int64_t in, std::int64_t width, int stride)
      : conv1_(add("conv1", conv(in, width, 3, stride))),
        bn1_(add("bn1", nn::BatchNorm2d(width))),
        conv2_(add("conv2", conv(width, width, 3))),
        bn2_(add("bn2", nn::BatchNorm2d(width))),
        downsample_(projection(in, width, stride)) {
    if (downsample_.size() > 0) add("downsample", downsample_);
  }

  Tensor forward(const Tensor& x) const override {
    const Tensor y = bn2_(conv2_(relu(bn1_(conv1_(x)))));
    return relu(y + (downsample_.size() > 0 ? downsample_(x) : x));
  }

 private:
  nn::Conv2d conv1_;
  nn::BatchNorm2d bn1_;
  nn::Conv2d conv2_;
  nn::BatchNorm2d bn2_;
  nn::Sequential downsample_;
};

// 1x1, 3x3 (with the stride), 1x1, each with batch-norm; added to the input, or to its projection.
class Bottleneck : public nn::ModuleOf<Bottleneck> {
 public:
  Bottleneck(std::int64_t in, std::int64_t width, int stride)
      : conv1_(add("conv1", conv(in, width, 1))),
        bn1_(add("bn1", nn::BatchNorm2d(width))),
        conv2_(add("conv2", conv(width, width, 3, stride))),
        bn2_(add("bn2", nn::BatchNorm2d(width))),
        conv3_(add("conv3", conv(width, width * kExpansion, 1))),
        bn3_(add("bn3", nn::BatchNorm2d(width * kExpansion))),
        downsample_(projection(in, width * kExpansion, stride)) {
    if (downsample_.size() > 0) add("downsample", downsample_);
  }

  Tensor forward(const Tensor& x) const override {
    Tensor y = relu(bn1_(conv1_(x)));
    y = relu(bn2_(conv2_(y)));
    y = bn3_(conv3_(y));
    return relu(y + (downsample_.size() > 0 ? downsample_(x) : x));
  }

 private:
  nn::Conv2d conv1_;
  nn::BatchNorm2d bn1_;
  nn::Conv2d conv2_;
  nn::BatchNorm2d bn2_;
  nn::Conv2d conv3_;
  nn::BatchNorm2d bn3_;
  nn::Sequential downsample_;
};

}  // namespace

ResNet::ResNet(const std::vector<int>& blocks, std::int64_t classes, ResNetBlock block_kind)
    : conv1_(add("conv1", nn::Conv2d(3, 64, 7, {.stride = 2, .padding = 3, .bias = false}))),
      bn1_(add("bn1", nn::BatchNorm2d(64))),
      fc_(block_kind == ResNetBlock::basic ? 512 : 512 * kExpansion, classes) {
  std::int64_t in = 64, width = 64;
  for (std::size_t stage = 0; stage < blocks.size(); ++stage, width *= 2) {
    nn::Sequential layer;
    for (int block = 0; block < blocks[stage]; ++block) {
      const int stride = block == 0 && stage > 0 ? 2 : 1;
      if (block_kind == ResNetBlock::basic) {
        layer.push_back(BasicBlock(in, width, stride));
        in = width;
      } else {
        layer.push_back(Bottleneck(in, width, stride));
        in = width * kExpansion;
      }
    }
    layers_.push_back(add("layer" + std::to_string(stage + 1), layer));
  }
  add("fc", fc_);
  draw_initial_weights(*this, {.fan = Fan::out});
}

Tensor ResNet::forward(const Tensor& x) const {
  Tensor y = max_pool2d(relu(bn1_(conv1_(x))), 3, {.stride = 2, .padding = 1});
  for (const nn::Sequential& layer : layers_) y = layer(y);
  return fc_(flatten(adaptive_avg_pool2d(y, 1), 1));
}

ResNet resnet18(std::int64_t classes) { return ResNet({2, 2, 2, 2}, classes, ResNetBlock::basic); }

ResNet resnet34(std::int64_t classes) { return ResNet({3, 4, 6, 3}, classes, ResNetBlock::basic); }

ResNet resnet50(std::int64_t classes) { return ResNet({3, 4, 6, 3}, classes); }

}  // namespace fusejit::models
