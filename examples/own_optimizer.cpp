// An optimiser and a dataset of one's own: signs of gradients, and images that are made as they are asked for.
//
//     own_optimizer [STEPS]
#include <charconv>
#include <iostream>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "fusejit/fusejit.h"

namespace {

namespace fj = fusejit;
namespace nn = fusejit::nn;

// p -= lr * sign(m), m = momentum*m + (1 - momentum)*g: what an optimiser does with one parameter. All of them, and the
// gradients, are still one plan.
struct SignMomentum : fj::optim::Rule {
  std::string name() const override { return "SignMomentum"; }
  std::vector<std::string> state() const override { return {"average"}; }
  // Arguments of the trace: another rate compiles nothing.
  std::vector<double> numbers(const Settings& group, std::int64_t) const override {
    return {group.lr, group.momentum.value_or(0.9)};
  }
  void apply(Update& u, const std::vector<fj::Tensor>& n) const override {
    u.state[0] = u.state[0] * n[1] + u.gradient * (1 - n[1]);
    u.value = u.value - fj::sign(u.state[0]) * n[0];
  }
};

// 16 x 16 grey images of a bright bar, upright (0) or lying (1).
struct Bars : fj::data::Dataset {
  std::int64_t size() const override { return 512; }
  fj::data::Example get(std::int64_t index) const override {
    fj::data::Image image{16, 16, 1, std::vector<std::uint8_t>(256, 20)};
    const std::int64_t at = index / 2 % 14 + 1;
    for (std::int64_t i = 2; i < 14; ++i)
      image.pixels[static_cast<std::size_t>(index % 2 == 0 ? i * 16 + at : at * 16 + i)] = 220;
    return {image, index % 2};
  }
};

// The network, and what trains it on which images.
struct Training {
  nn::Sequential net{nn::Conv2d(1, 8, 3), nn::ReLU(), nn::MaxPool2d(2), nn::Flatten(), nn::Linear(8 * 7 * 7, 2)};
  fj::optim::Optimizer opt{std::make_shared<SignMomentum>(), {{.parameters = net.parameters()}}, {.lr = 0.002}};
  fj::Step<fj::Tensor(fj::Tensor, fj::Tensor)> step = fj::train_step(
      net, opt, [net = net](const fj::Tensor& x, const fj::Tensor& y) { return fj::cross_entropy(net(x), y); });
  fj::data::DataLoader batches{std::make_shared<Bars>(),
                               {.batch_size = 32, .shuffle = true, .num_workers = 2, .seed = 1}};
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
  const int steps = argc > 1 ? steps_of(argv[1]) : 60;
  fj::manual_seed(1);
  Training training;
  auto& step = training.step;
  while (step.count() < steps) {
    for (auto [x, y] : training.batches) {
      const float loss = step(x, y).item<float>();
      if (step.count() % 10 == 0) std::cout << "step " << step.count() << ": loss " << loss << '\n';
      if (step.count() == steps) break;
    }
  }
  std::cout << "plans made for " << steps << " steps: " << fj::stats().plans_made << '\n';
  if (!std::cout.flush()) throw std::runtime_error("standard output cannot be written");
} catch (const std::exception& error) {
  std::cerr << "own_optimizer: " << error.what() << '\n';
  return 1;
}
