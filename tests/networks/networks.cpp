#include "tests/networks/networks.h"

namespace fusejit::test {
namespace {

nn::Conv2d conv(std::int64_t in, std::int64_t out, int kernel, int stride = 1) {
  return nn::Conv2d(in, out, kernel, {.stride = stride, .padding = kernel / 2, .bias = false});
}

Tensor mean_of_images(const Tensor& x) { return mean(x, {2, 3}); }

// One after another, under names of their own.
class Chain : public nn::ModuleOf<Chain> {
 public:
  void then(const std::string& name, const nn::Module& module) {
    add_child(name, module);
    modules_.push_back(module.share());
  }
  Tensor forward(const Tensor& x) override {
    Tensor y = x;
    for (const auto& module : modules_) y = (*module)(y);
    return y;
  }

 private:
  std::vector<std::shared_ptr<nn::Module>> modules_;
};

// ---- DenseNet-121 ---------------------------------------------------------------------------------------------------

class DenseLayer : public nn::ModuleOf<DenseLayer> {
 public:
  DenseLayer(std::int64_t in, std::int64_t growth)
      : norm1_(add("norm1", nn::BatchNorm2d(in))),
        conv1_(add("conv1", conv(in, 4 * growth, 1))),
        norm2_(add("norm2", nn::BatchNorm2d(4 * growth))),
        conv2_(add("conv2", conv(4 * growth, growth, 3))) {}
  Tensor forward(const Tensor& x) override { return concat({x, conv2_(relu(norm2_(conv1_(relu(norm1_(x))))))}, 1); }

 private:
  nn::BatchNorm2d norm1_;
  nn::Conv2d conv1_;
  nn::BatchNorm2d norm2_;
  nn::Conv2d conv2_;
};

class DenseNet : public nn::ModuleOf<DenseNet> {
 public:
  DenseNet(const std::vector<int>& blocks, std::int64_t growth, std::int64_t first, std::int64_t classes) {
    features_.then("conv0", conv(3, first, 7, 2));
    features_.then("norm0", nn::BatchNorm2d(first));
    features_.then("relu0", nn::ReLU());
    features_.then("pool0", nn::MaxPool2d(3, {.stride = 2, .padding = 1}));
    std::int64_t channels = first;
    for (std::size_t b = 0; b < blocks.size(); ++b) {
      Chain block;
      for (int i = 1; i <= blocks[b]; ++i, channels += growth)
        block.then("denselayer" + std::to_string(i), DenseLayer(channels, growth));
      features_.then("denseblock" + std::to_string(b + 1), block);
      if (b + 1 == blocks.size()) break;
      Chain transition;
      transition.then("norm", nn::BatchNorm2d(channels));
      transition.then("relu", nn::ReLU());
      transition.then("conv", conv(channels, channels / 2, 1));
      transition.then("pool", nn::AvgPool2d(2));
      features_.then("transition" + std::to_string(b + 1), transition);
      channels /= 2;
    }
    features_.then("norm5", nn::BatchNorm2d(channels));
    add("features", features_);
    classifier_.push_back(add("classifier", nn::Linear(channels, classes)));
  }
  Tensor forward(const Tensor& x) override { return classifier_[0](mean_of_images(relu(features_(x)))); }

 private:
  Chain features_;
  std::vector<nn::Linear> classifier_;
};

// ---- U-Net ----------------------------------------------------------------------------------------------------------

nn::Sequential two_convolutions(std::int64_t in, std::int64_t out) {
  return nn::Sequential(conv(in, out, 3), nn::BatchNorm2d(out), nn::ReLU(), conv(out, out, 3), nn::BatchNorm2d(out),
                        nn::ReLU());
}

// Twice the size; weight: [in,out,2,2].
class UpConvolution : public nn::ModuleOf<UpConvolution> {
 public:
  UpConvolution(std::int64_t in, std::int64_t out)
      : weight_(parameter("weight", zeros({in, out, 2, 2}))), bias_(parameter("bias", zeros({out}))) {}
  Tensor forward(const Tensor& x) override { return bias_add(conv_transpose2d(x, weight_, {.stride = 2}), bias_); }

 private:
  nn::Parameter weight_, bias_;
};

class UNet : public nn::ModuleOf<UNet> {
 public:
  UNet(std::int64_t width, int depth, std::int64_t classes) : head_(add("head", nn::Conv2d(width, classes, 1))) {
    std::int64_t in = 3;
    for (int i = 0; i < depth; ++i) {
      const std::string level = std::to_string(i);
      const std::int64_t out = width << i;
      down_.push_back(add("down" + level, two_convolutions(in, out)));
      up_.push_back(add("up" + level, UpConvolution(2 * out, out)));
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
  std::vector<UpConvolution> up_;
  nn::Sequential bottom_;
  nn::Conv2d head_;
};

// ---- ConvNeXt -------------------------------------------------------------------------------------------------------

// Over the last axis.
class LayerNorm : public nn::ModuleOf<LayerNorm> {
 public:
  explicit LayerNorm(std::int64_t channels)
      : weight_(parameter("weight", ones({channels}))), bias_(parameter("bias", zeros({channels}))) {}
  Tensor forward(const Tensor& x) override { return layer_norm(x, {x.size(-1)}, weight_, bias_, 1e-6); }

 private:
  nn::Parameter weight_, bias_;
};

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

template <Tensor (*f)(const Tensor&)>
class Function : public nn::ModuleOf<Function<f>> {
 public:
  Tensor forward(const Tensor& x) override { return f(x); }
};

Tensor gelu_of(const Tensor& x) { return gelu(x); }

class ConvNextBlock : public nn::ModuleOf<ConvNextBlock> {
 public:
  explicit ConvNextBlock(std::int64_t channels)
      : layer_scale_(parameter("layer_scale", ones({channels, 1, 1}))),
        block_(add("block", nn::Sequential(nn::Conv2d(channels, channels, 7, {.padding = 3, .groups = channels}),
                                           Function<channels_last>(), LayerNorm(channels),
                                           nn::Linear(channels, 4 * channels), Function<gelu_of>(),
                                           nn::Linear(4 * channels, channels), Function<channels_first>()))) {}
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
      {"resnet50", [] { return shared(models::resnet50(kClasses)); }, {4, 3, 64, 64}, {4}, cross_entropy_of},
      {"mobilenet_v2", [] { return shared(models::mobilenet_v2(kClasses, 0)); }, {4, 3, 64, 64}, {4}, cross_entropy_of},
      {"densenet121",
       [] {
         return shared(DenseNet({6, 12, 24, 16}, 32, 64, kClasses));
       },
       {4, 3, 64, 64},
       {4},
       cross_entropy_of},
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
