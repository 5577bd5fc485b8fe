// A GAN on 16 x 16 images of a bright square: two networks, two optimisers, each step of which is one plan.
//
//     gan [STEPS]
#include <charconv>
#include <iostream>
#include <stdexcept>
#include <string>

#include "fusejit/fusejit.h"

namespace {

namespace fj = fusejit;
namespace nn = fusejit::nn;

constexpr std::int64_t kNoise = 16;

nn::Sequential generator() {
  return nn::Sequential(
      nn::Linear(kNoise, 32 * 4 * 4), nn::ReLU(),
      [](const fj::Tensor& x) {
        return fj::reshape(x, {-1, 32, 4, 4});
      },
      nn::ConvTranspose2d(32, 16, 4, {.stride = 2, .padding = 1}), nn::BatchNorm2d(16), nn::ReLU(),
      nn::ConvTranspose2d(16, 1, 4, {.stride = 2, .padding = 1}), nn::Sigmoid());
}

nn::Sequential discriminator() {
  return nn::Sequential(nn::Conv2d(1, 16, 4, {.stride = 2, .padding = 1}), nn::LeakyReLU(0.2),
                        nn::Conv2d(16, 32, 4, {.stride = 2, .padding = 1}), nn::LeakyReLU(0.2), nn::Flatten(),
                        nn::Linear(32 * 4 * 4, 1));
}

// A square of side 6 somewhere, [n,1,16,16].
fj::Tensor squares(std::int64_t n) {
  const fj::Tensor rows = fj::reshape(fj::arange(16, fj::f32), {1, 1, 16, 1});
  const fj::Tensor columns = fj::reshape(fj::arange(16, fj::f32), {1, 1, 1, 16});
  const fj::Tensor top = fj::floor(fj::rand({n, 1, 1, 1}) * 10), left = fj::floor(fj::rand({n, 1, 1, 1}) * 10);
  const fj::Tensor inside = (rows >= top) & (rows < top + 6) & (columns >= left) & (columns < left + 6);
  return fj::where(inside, 0.9F, fj::full({n, 1, 16, 16}, 0.1F));
}

// How sure the discriminator is that all are real, or all made up.
fj::Tensor surprise(const fj::Tensor& logits, bool real) {
  return fj::binary_cross_entropy_with_logits(logits, fj::full(logits.shape(), real ? 0.9 : 0.0));
}

// Two networks that learn from each other. A step of one computes through the other and leaves it as it is.
struct Training {
  nn::Sequential make = generator(), judge = discriminator();
  fj::optim::Adam makes{make.parameters(), {.lr = 1e-3, .beta1 = 0.5}};
  fj::optim::Adam judges{judge.parameters(), {.lr = 5e-4, .beta1 = 0.5}};
  fj::Step<fj::Tensor(fj::Tensor, fj::Tensor)> judge_step =
      fj::train_step(judge, judges, [make = make, judge = judge](const fj::Tensor& real, const fj::Tensor& noise) {
        return surprise(judge(real), true) + surprise(judge(make(noise).detach()), false);
      });
  fj::Step<fj::Tensor(fj::Tensor)> make_step = fj::train_step(
      make, makes,
      [make = make, judge = judge](const fj::Tensor& noise) { return surprise(judge(make(noise)), true); });
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
  const int steps = argc > 1 ? steps_of(argv[1]) : 600;
  fj::manual_seed(1);
  Training training;
  for (int i = 1; i <= steps; ++i) {
    const fj::Tensor real = squares(32);
    const float judged = training.judge_step(real, fj::randn({32, kNoise})).item<float>();
    const float made = training.make_step(fj::randn({32, kNoise})).item<float>();
    if (i % 100 == 0 || i == steps) std::cout << "step " << i << ": judge " << judged << ", maker " << made << '\n';
  }

  training.make.eval();
  const fj::NoGrad off;
  const std::vector<float> pixels = training.make(fj::randn({4, kNoise})).to_vector<float>();
  for (std::size_t row = 0; row < 16; ++row) {
    for (std::size_t image = 0; image < 4; ++image) {
      for (std::size_t column = 0; column < 16; ++column)
        std::cout << " .:-=+*#%@"[static_cast<std::size_t>(9.99F * pixels[(image * 16 + row) * 16 + column])];
      std::cout << "  ";
    }
    std::cout << '\n';
  }
  if (!std::cout.flush()) throw std::runtime_error("standard output cannot be written");
} catch (const std::exception& error) {
  std::cerr << "gan: " << error.what() << '\n';
  return 1;
}
