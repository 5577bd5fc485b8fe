// A U-Net that finds discs: segmentation, skip connections, and the mask as a picture of characters.
//
//     unet [STEPS]
#include <charconv>
#include <iostream>
#include <stdexcept>
#include <string>
#include <utility>

#include "fusejit/fusejit.h"

namespace {

namespace fj = fusejit;
namespace nn = fusejit::nn;

nn::Sequential block(std::int64_t in, std::int64_t out) {
  return nn::Sequential(nn::Conv2d(in, out, 3, {.padding = 1, .bias = false}), nn::BatchNorm2d(out), nn::ReLU(),
                        nn::Conv2d(out, out, 3, {.padding = 1, .bias = false}), nn::BatchNorm2d(out), nn::ReLU());
}

// Ronneberger, Fischer and Brox 2015, of two levels. x: [N,1,H,W] with H and W multiples of 4 -> [N,1,H,W].
struct UNet : nn::ModuleOf<UNet> {
  nn::Sequential first = add("first", block(1, 8)), second = add("second", block(8, 16));
  nn::Sequential bottom = add("bottom", block(16, 32));
  nn::ConvTranspose2d up2 = add("up2", nn::ConvTranspose2d(32, 16, 2, {.stride = 2}));
  nn::Sequential right2 = add("right2", block(32, 16));
  nn::ConvTranspose2d up1 = add("up1", nn::ConvTranspose2d(16, 8, 2, {.stride = 2}));
  nn::Sequential right1 = add("right1", block(16, 8));
  nn::Conv2d head = add("head", nn::Conv2d(8, 1, 1));

  fj::Tensor forward(const fj::Tensor& x) const override {
    const fj::Tensor a = first(x), b = second(fj::max_pool2d(a, 2)), c = bottom(fj::max_pool2d(b, 2));
    const fj::Tensor d = right2(fj::concat({up2(c), b}, 1));
    return head(right1(fj::concat({up1(d), a}, 1)));
  }
};

// Noisy images [n,1,32,32] of a disc somewhere, and where it is.
std::pair<fj::Tensor, fj::Tensor> discs(std::int64_t n) {
  const fj::Tensor rows = fj::reshape(fj::arange(32, fj::f32), {1, 1, 32, 1});
  const fj::Tensor columns = fj::reshape(fj::arange(32, fj::f32), {1, 1, 1, 32});
  const fj::Tensor row = fj::rand({n, 1, 1, 1}) * 20 + 6, column = fj::rand({n, 1, 1, 1}) * 20 + 6;
  const fj::Tensor radius = fj::rand({n, 1, 1, 1}) * 3 + 3;
  const fj::Tensor inside = fj::square(rows - row) + fj::square(columns - column) < fj::square(radius);
  const fj::Tensor mask = inside.to(fj::f32);
  const fj::Tensor image = mask + fj::randn({n, 1, 32, 32}) * 0.7;
  fj::eval({image, mask});
  return {image, mask};
}

// The network, and what trains it.
struct Training {
  UNet net;
  fj::optim::AdamW opt{net.parameters(), {.lr = 3e-3}};
  fj::Step<fj::Tensor(fj::Tensor, fj::Tensor)> step =
      fj::train_step(net, opt, [net = net](const fj::Tensor& x, const fj::Tensor& mask) {
        return fj::binary_cross_entropy_with_logits(net(x), mask);
      });
};

int steps_of(const std::string& text) {
  int steps = 0;
  const auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), steps);
  if (error != std::errc() || stop != text.data() + text.size() || steps < 1)
    throw std::invalid_argument("STEPS is '" + text + "', it must be a whole number above 0");
  return steps;
}

}  // namespace

int main(int argc, char** argv) try {
  const int steps = argc > 1 ? steps_of(argv[1]) : 100;
  fj::manual_seed(1);
  Training training;
  for (int i = 1; i <= steps; ++i) {
    const auto [x, mask] = discs(16);
    const float loss = training.step(x, mask).item<float>();
    if (i % 10 == 0) std::cout << "step " << i << ": loss " << loss << '\n';
  }

  training.net.eval();
  const fj::NoGrad off;
  const auto [x, mask] = discs(64);
  const fj::Tensor found = training.net(x) > 0, truth = mask > 0;
  const float both = fj::sum(found & truth).to(fj::f32).item<float>();
  const float either = fj::sum(found | truth).to(fj::f32).item<float>();
  std::cout << "intersection over union: " << both / either << '\n';
  const std::vector<bool> first = fj::slice(found, 0, 0, 1).to_vector<bool>();
  for (int row = 0; row < 32; row += 2) {
    for (int column = 0; column < 32; ++column)
      std::cout << (first[static_cast<std::size_t>(row * 32 + column)] ? '#' : '.');
    std::cout << '\n';
  }
  if (!std::cout.flush()) throw std::runtime_error("standard output cannot be written");
} catch (const std::exception& error) {
  std::cerr << "unet: " << error.what() << '\n';
  return 1;
}
