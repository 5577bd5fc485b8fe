#include "frontend/nn/shapes_only.h"
#include "fusejit/models.h"

namespace fusejit::models {
namespace {

// 1x1 to few channels; of those 1x1 and 3x3 to `out` channels each, one behind the other.
class Fire : public nn::ModuleOf<Fire> {
 public:
  Fire(std::int64_t in, std::int64_t squeezed, std::int64_t out)
      : squeeze_(add("squeeze", nn::Conv2d(in, squeezed, 1))),
        expand1x1_(add("expand1x1", nn::Conv2d(squeezed, out, 1))),
        expand3x3_(add("expand3x3", nn::Conv2d(squeezed, out, 3, {.padding = 1}))) {}

  Tensor forward(const Tensor& x) const override {
    const Tensor squeezed = relu(squeeze_(x));
    return concat({relu(expand1x1_(squeezed)), relu(expand3x3_(squeezed))}, 1);
  }

 private:
  nn::Conv2d squeeze_, expand1x1_, expand3x3_;
};

// As torchvision draws them.
void draw_values(const nn::Module& net) {
  if (nn::ShapesOnly::is_on()) return;
  for (const auto& [name, parameter] : net.named_parameters()) {
    if (name.ends_with("bias")) {
      nn::init::zeros_(parameter);
    } else if (name.starts_with("classifier")) {
      nn::init::normal_(parameter, 0, 0.01);
    } else {
      nn::init::kaiming_uniform_(parameter);
    }
  }
}

}  // namespace

SqueezeNet::SqueezeNet(SqueezeNetVersion version, std::int64_t classes, double dropout) {
  const bool is_first = version == SqueezeNetVersion::v1_0;
  const nn::MaxPool2d pool(3, {.stride = 2, .ceil_mode = true});
  std::int64_t in = is_first ? 96 : 64;
  features_.push_back(nn::Conv2d(3, in, is_first ? 7 : 3, {.stride = 2})).push_back(nn::ReLU()).push_back(pool);
  for (int fire = 0; fire < 8; ++fire) {
    if (is_first ? fire == 3 || fire == 7 : fire == 2 || fire == 4) features_.push_back(pool);
    const std::int64_t squeezed = 16 * (fire / 2 + 1), out = 4 * squeezed;
    features_.push_back(Fire(in, squeezed, out));
    in = 2 * out;
  }
  classifier_ = nn::Sequential(nn::Dropout(dropout), nn::Conv2d(in, classes, 1), nn::ReLU(), nn::AdaptiveAvgPool2d(1));
  add("features", features_), add("classifier", classifier_);
  draw_values(*this);
}

Tensor SqueezeNet::forward(const Tensor& x) const { return flatten(classifier_(features_(x)), 1); }

SqueezeNet squeezenet1_0(std::int64_t classes, double dropout) {
  return SqueezeNet(SqueezeNetVersion::v1_0, classes, dropout);
}
SqueezeNet squeezenet1_1(std::int64_t classes, double dropout) {
  return SqueezeNet(SqueezeNetVersion::v1_1, classes, dropout);
}

}  // namespace fusejit::models
