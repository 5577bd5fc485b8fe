// A small vision transformer: patches, attention, layer norm, warm-up and cosine.
//
//     vision_transformer [STEPS]
#include <charconv>
#include <iostream>
#include <stdexcept>
#include <string>
#include <utility>

#include "fusejit/fusejit.h"

namespace {

namespace fj = fusejit;
namespace nn = fusejit::nn;

// Dosovitskiy et al. 2021: norm in front, then attention or two linear layers, added. x: [N,L,width].
struct Block : nn::ModuleOf<Block> {
  explicit Block(std::int64_t width)
      : norm1(add("norm1", nn::LayerNorm({width}))),
        attention(add("attention", nn::MultiheadAttention(width, 4))),
        norm2(add("norm2", nn::LayerNorm({width}))),
        mlp(add("mlp", nn::Sequential(nn::Linear(width, 2 * width), nn::GELU(), nn::Linear(2 * width, width)))) {}
  fj::Tensor forward(const fj::Tensor& x) const override {
    const fj::Tensor y = x + attention(norm1(x));
    return y + mlp(norm2(y));
  }
  nn::LayerNorm norm1;
  nn::MultiheadAttention attention;
  nn::LayerNorm norm2;
  nn::Sequential mlp;
};

// x: [N,1,16,16] -> [N,4].
struct VisionTransformer : nn::ModuleOf<VisionTransformer> {
  static constexpr std::int64_t kWidth = 32, kPatches = 16;
  nn::Conv2d patches = add("patches", nn::Conv2d(1, kWidth, 4, {.stride = 4}));
  nn::Parameter places = parameter("places", fj::randn({1, kPatches, kWidth}) * 0.2);
  nn::Sequential blocks = add("blocks", nn::Sequential(Block(kWidth), Block(kWidth)));
  nn::LayerNorm norm = add("norm", nn::LayerNorm({kWidth}));
  nn::Linear head = add("head", nn::Linear(kWidth, 4));
  fj::Tensor forward(const fj::Tensor& x) const override {
    const fj::Tensor tokens = fj::transpose(fj::flatten(patches(x), 2), 1, 2) + places.value();  // [N,16,32]
    return head(fj::mean(norm(blocks(tokens)), {1}));
  }
};

// A bright cell in one of the four quarters, which is the class.
std::pair<fj::Tensor, fj::Tensor> examples(std::int64_t n) {
  const fj::Tensor label = fj::randint(4, {n}), quarter = fj::reshape(label, {n, 1, 1, 1});
  const auto place = [&](const fj::Tensor& half) { return half * 8 + fj::randint(8, {n, 1, 1, 1}); };
  const fj::Tensor row = place(fj::floor_divide(quarter, 2)), column = place(fj::remainder(quarter, 2));
  const fj::Tensor rows = fj::reshape(fj::arange(16), {1, 1, 16, 1}),
                   columns = fj::reshape(fj::arange(16), {1, 1, 1, 16});
  const fj::Tensor image = ((rows == row) & (columns == column)).to(fj::f32) * 4 + fj::randn({n, 1, 16, 16}) * 0.3;
  fj::eval({image, label});
  return {image, label};
}

// The network, and what trains it for so many steps: a tenth of them warm up.
struct Training {
  explicit Training(int steps) : warm_up(steps / 10 + 1), last(steps) {}
  int warm_up, last;
  VisionTransformer net;
  fj::optim::AdamW opt{net.parameters(), {.lr = 2e-3}};
  fj::optim::LinearLR warm{opt, {.start_factor = 0.1, .total_iters = warm_up}};
  fj::optim::SequentialLR schedule{opt, {warm, fj::optim::CosineAnnealingLR(opt, last)}, {warm_up}};
  fj::Step<fj::Tensor(fj::Tensor, fj::Tensor)> step = fj::train_step(
      net, opt, [net = net](const fj::Tensor& x, const fj::Tensor& y) { return fj::cross_entropy(net(x), y); },
      {.max_grad_norm = 1});
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
  Training training(steps);
  for (int i = 1; i <= steps; ++i) {
    const auto [x, y] = examples(32);
    const float loss = training.step(x, y).item<float>();
    training.schedule.step();
    if (i % 50 == 0 || i == steps)
      std::cout << "step " << i << ": loss " << loss << ", rate " << training.opt.lr() << '\n';
  }
  training.net.eval();
  const fj::NoGrad off;
  const auto [x, y] = examples(256);
  std::cout << "right: " << fj::sum(fj::argmax(training.net(x), 1) == y).item<std::int64_t>() << " of 256\n";
  if (!std::cout.flush()) throw std::runtime_error("standard output cannot be written");
} catch (const std::exception& error) {
  std::cerr << "vision_transformer: " << error.what() << '\n';
  return 1;
}
