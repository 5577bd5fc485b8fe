#include "fusejit/models.h"
#include "ir/base/check.h"

namespace fusejit::models {
namespace {

nn::Sequential two_convolutions(std::int64_t in, std::int64_t out) {
  const nn::Conv2dOptions options{.padding = 1, .bias = false};
  return nn::Sequential(nn::Conv2d(in, out, 3, options), nn::BatchNorm2d(out), nn::ReLU(),
                        nn::Conv2d(out, out, 3, options), nn::BatchNorm2d(out), nn::ReLU());
}

// [N,2*out,H,W] -> [N,out,2*H,2*W].
std::shared_ptr<nn::Module> up_to(std::int64_t out, UNetUp up) {
  if (up == UNetUp::transpose) return nn::ConvTranspose2d(2 * out, out, 2, {.stride = 2}).share();
  return nn::Sequential(nn::Upsample({.scale_factor = 2, .mode = "bilinear"}),
                        nn::Conv2d(2 * out, out, 3, {.padding = 1}))
      .share();
}

}  // namespace

UNet::UNet(std::int64_t classes, const UNetOptions& options) : head_(options.width, classes, 1) {
  FJ_CHECK(options.depth >= 1 && options.depth <= 16, "unet: its depth is {}, it must be 1 to 16", options.depth);
  FJ_CHECK(options.width >= 1 && options.width <= 1 << 16, "unet: its width is {}, it must be 1 to 65536",
           options.width);
  std::int64_t in = options.channels;
  for (int i = 0; i < options.depth; ++i) {
    const std::int64_t out = options.width << i;
    const std::string level = std::to_string(i);
    down_.push_back(add("down" + level, two_convolutions(in, out)));
    up_.push_back(up_to(out, options.up));
    add_child("up" + level, *up_.back());
    merge_.push_back(add("merge" + level, two_convolutions(2 * out, out)));
    in = out;
  }
  bottom_ = add("bottom", two_convolutions(in, 2 * in));
  add("head", head_);
}

Tensor UNet::forward(const Tensor& image) const {
  const std::int64_t cells = std::int64_t{1} << down_.size();
  FJ_CHECK(image.rank() == 4 && image.size(2) % cells == 0 && image.size(3) % cells == 0,
           "unet: x must be [N,C,H,W] with H and W multiples of {} (x: {})", cells, image.type().str());
  Tensor x = image;
  std::vector<Tensor> skips;
  for (const nn::Sequential& down : down_) {
    skips.push_back(down(x));
    x = max_pool2d(skips.back(), 2);
  }
  x = bottom_(x);
  for (std::size_t i = down_.size(); i-- > 0;) x = merge_[i](concat({skips[i], (*up_[i])(x)}, 1));
  return head_(x);
}

UNet unet(std::int64_t classes, const UNetOptions& options) { return UNet(classes, options); }

}  // namespace fusejit::models
