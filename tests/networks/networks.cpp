#include "tests/networks/networks.h"

namespace fusejit::test {
namespace {

nn::Conv2d conv(std::int64_t in, std::int64_t out, int kernel, int stride = 1) {
  return nn::Conv2d(in, out, kernel, {.stride = stride, .padding = kernel / 2, .bias = false});
}

// ---- U-Net ----------------------------------------------------------------------------------------------------------

nn::Sequential two_convolutions(std::int64_t in, std::int64_t out) {
  return nn::Sequential(conv(in, out, 3), nn::BatchNorm2d(out), nn::ReLU(), conv(out, out, 3), nn::BatchNorm2d(out),
                        nn::ReLU());
}

class UNet : public nn::ModuleOf<UNet> {
 public:
  UNet(std::int64_t width, int depth, std::int64_t classes) : head_(add("head", nn::Conv2d(width, classes, 1))) {
    std::int64_t in = 3;
    for (int i = 0; i < depth; ++i) {
      const std::string level = std::to_string(i);
      const std::int64_t out = width << i;
      down_.push_back(add("down" + level, two_convolutions(in, out)));
      up_.push_back(add("up" + level, nn::ConvTranspose2d(2 * out, out, 2, {.stride = 2})));
      merge_.push_back(add("merge" + level, two_convolutions(2 * out, out)));
      in = out;
    }
    bottom_ = add("bottom", two_convolutions(in, 2 * in));
  }
  Tensor forward(const Tensor& image) override {
    Tensor x = image;
    std::vector<Tensor> skips;
    for (nn::Sequential& down : down_) {
      skips.push_back(down(x));
      x = max_pool2d(skips.back(), 2);
    }
    x = bottom_(x);
    for (std::size_t i = down_.size(); i-- > 0;) x = merge_[i](concat({skips[i], up_[i](x)}, 1));
    return head_(x);
  }

 private:
  std::vector<nn::Sequential> down_, merge_;
  std::vector<nn::ConvTranspose2d> up_;
  nn::Sequential bottom_;
  nn::Conv2d head_;
};

// ---- ConvNeXt -------------------------------------------------------------------------------------------------------

Tensor channels_last(const Tensor& x) { return permute(x, {0, 2, 3, 1}); }
Tensor channels_first(const Tensor& x) { return permute(x, {0, 3, 1, 2}); }

// Over the channels of [N,C,H,W].
class ChannelNorm : public nn::ModuleOf<ChannelNorm> {
 public:
  explicit ChannelNorm(std::int64_t channels)
      : weight_(parameter("weight", ones({channels}))), bias_(parameter("bias", zeros({channels}))) {}
  Tensor forward(const Tensor& x) override {
    return channels_first(layer_norm(channels_last(x), {x.size(1)}, weight_, bias_, 1e-6));
  }

 private:
  nn::Parameter weight_, bias_;
};

class ConvNextBlock : public nn::ModuleOf<ConvNextBlock> {
 public:
  explicit ConvNextBlock(std::int64_t channels)
      : layer_scale_(parameter("layer_scale", ones({channels, 1, 1}))),
        block_(add("block",
                   nn::Sequential(nn::Conv2d(channels, channels, 7, {.padding = 3, .groups = channels}), channels_last,
                                  nn::LayerNorm(channels, {.eps = 1e-6}), nn::Linear(channels, 4 * channels),
                                  nn::GELU(), nn::Linear(4 * channels, channels), channels_first))) {}
  Tensor forward(const Tensor& x) override { return layer_scale_.value() * block_(x) + x; }

 private:
  nn::Parameter layer_scale_;
  nn::Sequential block_;
};

class ConvNext : public nn::ModuleOf<ConvNext> {
 public:
  ConvNext(const std::vector<int>& blocks, const std::vector<std::int64_t>& channels, std::int64_t classes)
      : classifier_(ChannelNorm(channels.back()), nn::Flatten(), nn::Linear(channels.back(), classes)) {
    features_.push_back(nn::Sequential(nn::Conv2d(3, channels[0], 4, {.stride = 4}), ChannelNorm(channels[0])));
    for (std::size_t i = 0; i < blocks.size(); ++i) {
      if (i > 0) {
        features_.push_back(
            nn::Sequential(ChannelNorm(channels[i - 1]), nn::Conv2d(channels[i - 1], channels[i], 2, {.stride = 2})));
      }
      nn::Sequential stage;
      for (int b = 0; b < blocks[i]; ++b) stage.push_back(ConvNextBlock(channels[i]));
      features_.push_back(stage);
    }
    add("features", features_), add("classifier", classifier_);
  }
  Tensor forward(const Tensor& x) override { return classifier_(mean(features_(x), {2, 3}, true)); }

 private:
  nn::Sequential features_, classifier_;
};

Tensor cross_entropy_of(const Tensor& y, const Tensor& target) { return cross_entropy(y, target); }
Tensor nll_loss_of(const Tensor& y, const Tensor& target) { return nll_loss(y, target); }

template <class M>
std::shared_ptr<nn::Module> shared(const M& module) {
  return module.share();
}

}  // namespace

const std::vector<Network>& networks() {
  static const std::vector<Network> all = {
      {"convnet",
       [] { return shared(models::convnet(models::ConvnetForm::ordinary, 0)); },
       {5, 1, 28, 28},
       {5},
       nll_loss_of},
      {"convnet_save_input",
       [] { return shared(models::convnet(models::ConvnetForm::save_input, 0)); },
       {5, 1, 28, 28},
       {5},
       nll_loss_of,
       "convnet"},
      {"resnet18", [] { return shared(models::resnet18(kClasses)); }, {3, 3, 67, 75}, {3}, cross_entropy_of},
      {"resnet34", [] { return shared(models::resnet34(kClasses)); }, {3, 3, 64, 64}, {3}, cross_entropy_of},
      {"resnet50", [] { return shared(models::resnet50(kClasses)); }, {4, 3, 64, 64}, {4}, cross_entropy_of},
      {"mobilenet_v2", [] { return shared(models::mobilenet_v2(kClasses, 0)); }, {4, 3, 64, 64}, {4}, cross_entropy_of},
      {"vgg16",
       [] {
         return shared(models::VGG({2, 2, 3, 3, 3}, kClasses, {.dropout = 0, .hidden = 64}));
       },
       {3, 3, 70, 67},
       {3},
       cross_entropy_of},
      {"vgg16_bn",
       [] {
         return shared(models::VGG({2, 2, 3, 3, 3}, kClasses, {.dropout = 0, .batch_norm = true, .hidden = 64}));
       },
       {2, 3, 35, 44},
       {2},
       cross_entropy_of},
      {"densenet121", [] { return shared(models::densenet121(kClasses)); }, {4, 3, 64, 64}, {4}, cross_entropy_of},
      {"unet", [] { return shared(UNet(32, 4, kClasses)); }, {2, 3, 32, 48}, {2, 32, 48}, cross_entropy_of},
      {"convnext",
       [] {
         return shared(ConvNext({3, 3, 9, 3}, {40, 80, 160, 320}, kClasses));
       },
       {2, 3, 70, 58},
       {2},
       cross_entropy_of},
  };
  return all;
}

const Network& network_named(const std::string& name) {
  for (const Network& network : networks())
    if (network.name == name) return network;
  throw UserError("no network is called " + name);
}

}  // namespace fusejit::test
