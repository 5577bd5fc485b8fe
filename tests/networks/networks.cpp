#include "tests/networks/networks.h"

namespace fusejit::test {
namespace {

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
      {"squeezenet1_0",
       [] { return shared(models::squeezenet1_0(kClasses, 0)); },
       {2, 3, 66, 75},
       {2},
       cross_entropy_of},
      {"squeezenet1_1",
       [] { return shared(models::squeezenet1_1(kClasses, 0)); },
       {3, 3, 50, 64},
       {3},
       cross_entropy_of},
      {"unet",
       [] { return shared(models::unet(kClasses, {.width = 32})); },
       {2, 3, 32, 48},
       {2, 32, 48},
       cross_entropy_of},
      {"unet_bilinear",
       [] { return shared(models::unet(kClasses, {.width = 8, .depth = 3, .up = models::UNetUp::bilinear})); },
       {2, 3, 24, 40},
       {2, 24, 40},
       cross_entropy_of},
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
