// MobileNet-v3 with squeeze-and-excitation, made from layers, and its moving average, on images of stripes.
//
//     mobilenet_v3 [STEPS]
#include <charconv>
#include <iostream>
#include <stdexcept>
#include <string>
#include <utility>

#include "fusejit/fusejit.h"

namespace {

namespace fj = fusejit;
namespace nn = fusejit::nn;

nn::Sequential conv_norm(std::int64_t in, std::int64_t out, int kernel, int stride = 1, std::int64_t groups = 1) {
  return nn::Sequential(
      nn::Conv2d(in, out, kernel, {.stride = stride, .padding = kernel / 2, .groups = groups, .bias = false}),
      nn::BatchNorm2d(out));
}

// Hu, Shen and Sun 2018: channels weighed by what all of the image says of them.
struct SqueezeExcitation : nn::ModuleOf<SqueezeExcitation> {
  explicit SqueezeExcitation(std::int64_t channels)
      : down(add("fc1", nn::Conv2d(channels, channels / 4, 1))),
        up(add("fc2", nn::Conv2d(channels / 4, channels, 1))) {}
  fj::Tensor forward(const fj::Tensor& x) const override {
    return x * fj::hardsigmoid(up(fj::relu(down(fj::mean(x, {2, 3}, true)))));
  }
  nn::Conv2d down, up;
};

struct Stage {
  std::int64_t kernel, expanded, out;
  bool squeeze, hardswish;
  int stride;
};

// Howard et al. 2019: 1x1 up, depthwise, squeeze, 1x1 down, added where shapes agree.
struct Block : nn::ModuleOf<Block> {
  Block(std::int64_t in, const Stage& s) : adds(s.stride == 1 && in == s.out) {
    const auto act = [&] { body.push_back(s.hardswish ? nn::Functional(fj::hardswish) : nn::Functional(fj::relu)); };
    body.push_back(conv_norm(in, s.expanded, 1)), act();
    body.push_back(conv_norm(s.expanded, s.expanded, static_cast<int>(s.kernel), s.stride, s.expanded)), act();
    if (s.squeeze) body.push_back(SqueezeExcitation(s.expanded));
    body.push_back(conv_norm(s.expanded, s.out, 1));
    add("body", body);
  }
  fj::Tensor forward(const fj::Tensor& x) const override { return adds ? x + body(x) : body(x); }
  bool adds;
  nn::Sequential body;
};

// The small one's first stages. x: [N,3,H,W] -> [N,classes].
nn::Sequential mobilenet_v3(std::int64_t classes) {
  nn::Sequential net(conv_norm(3, 16, 3, 2), nn::Hardswish());
  std::int64_t channels = 16;
  for (const Stage& stage : {Stage{3, 16, 16, true, false, 2},
                             {3, 72, 24, false, false, 2},
                             {3, 88, 24, false, false, 1},
                             {5, 96, 40, true, true, 2},
                             {5, 240, 40, true, true, 1}}) {
    net.push_back(Block(channels, stage));
    channels = stage.out;
  }
  net.push_back(conv_norm(channels, 128, 1)).push_back(nn::Hardswish()).push_back(nn::AdaptiveAvgPool2d(1));
  net.push_back(nn::Flatten()).push_back(nn::Dropout(0.2)).push_back(nn::Linear(128, classes));
  return net;
}

// Noisy stripes [n,3,64,64] in one of four directions, which is the class.
std::pair<fj::Tensor, fj::Tensor> stripes(std::int64_t n) {
  const fj::Tensor label = fj::randint(4, {n}), angle = fj::reshape(label, {n, 1, 1, 1}) * 0.7853982;
  const fj::Tensor rows = fj::reshape(fj::arange(64, fj::f32), {1, 1, 64, 1});
  const fj::Tensor columns = fj::reshape(fj::arange(64, fj::f32), {1, 1, 1, 64});
  const fj::Tensor wave =
      fj::sin((fj::cos(angle) * columns + fj::sin(angle) * rows) * 0.8 + fj::rand({n, 1, 1, 1}) * 6);
  const fj::Tensor image = fj::expand(wave, {n, 3, 64, 64}) + fj::randn({n, 3, 64, 64}) * 0.5;
  fj::eval({image, label});
  return {image, label};
}

// A network, and what trains it: a moving average of its values is what is served.
struct Training {
  nn::Sequential net;
  fj::optim::RMSprop opt{net.parameters(), {.lr = 2e-3, .momentum = 0.9}};
  fj::optim::AveragedModel average{net, {.decay = 0.9, .use_buffers = true}};
  fj::Step<fj::Tensor(fj::Tensor, fj::Tensor)> step = fj::train_step(
      net, opt, [net = net](const fj::Tensor& x, const fj::Tensor& y) { return fj::cross_entropy(net(x), y); });
};

}  // namespace

int main(int argc, char** argv) try {
  int steps = 60;
  const std::string text = argc > 1 ? argv[1] : "60";
  const auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), steps);
  if (error != std::errc() || stop != text.data() + text.size() || steps < 1)
    throw std::invalid_argument("STEPS is '" + text + "', it must be a whole number above 0");
  fj::manual_seed(1);
  Training training{mobilenet_v3(4)};
  for (int i = 1; i <= steps; ++i) {
    const auto [x, y] = stripes(16);
    const float loss = training.step(x, y).item<float>();
    training.average.update_parameters();
    if (i % 10 == 0) std::cout << "step " << i << ": loss " << loss << '\n';
  }
  const auto [x, y] = stripes(128);
  const fj::Frozen serve = training.average.freeze();
  std::cout << "right: " << fj::sum(fj::argmax(serve(x), 1) == y).item<std::int64_t>() << " of 128\n";
  if (!std::cout.flush()) throw std::runtime_error("standard output cannot be written");
} catch (const std::exception& error) {
  std::cerr << "mobilenet_v3: " << error.what() << '\n';
  return 1;
}
