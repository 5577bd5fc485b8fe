// fusejit as a contender of bench/cpu.py: training steps and serving of the built-in networks, as a user writes them.
#include <cmath>
#include <numeric>
#include <random>

#include "bench/contest/contender.h"
#include "fusejit/fusejit.h"

namespace fj = fusejit;

namespace {

fj::Tensor images(const fj::Shape& shape, fj::DType dtype) {
  std::mt19937 random(1);
  std::normal_distribution<float> normal;
  std::vector<float> pixels(static_cast<std::size_t>(shape.elements()));
  for (float& pixel : pixels) pixel = normal(random);
  return fj::from_host(pixels.data(), shape, fj::f32).to(dtype).eval();
}

fj::Tensor labels(std::int64_t count, std::int64_t classes) {
  std::vector<std::int64_t> numbers(static_cast<std::size_t>(count));
  for (std::size_t i = 0; i < numbers.size(); ++i) numbers[i] = static_cast<std::int64_t>(i) % classes;
  return fj::from_host(numbers.data(), {count}, fj::i64).eval();
}

template <class Net, class Optimizer>
int train(Net& net, Optimizer optimizer, const fj::Tensor& x, std::int64_t classes, double held_before) {
  const fj::Tensor target = labels(x.shape()[0], classes);
  auto step = fj::train_step(net, optimizer, [&](const fj::Tensor& in, const fj::Tensor& t) {
    return classes == 10 ? fj::nll_loss(net(in), t) : fj::cross_entropy(net(in), t);
  });
  return contest::serve("fusejit", held_before, [&](const std::string&) {
    const double loss = step(x, target).template item<double>();
    return contest::StepResult{.loss = std::isfinite(loss) ? std::optional(loss) : std::nullopt};
  });
}

template <class Net>
int contend(Net net, const contest::Flags& flags, const fj::Shape& image, double held_before) {
  const fj::DType dtype = flags.text("dtype", "f32") == "bf16" ? fj::bf16 : fj::f32;
  net.to(dtype);
  const std::int64_t batch = flags.number("batch", 16);
  const fj::Tensor x = images({batch, image[0], image[1], image[2]}, dtype);
  if (flags.text("mode", "train") == "serve") {
    net.eval();
    const fj::Frozen serve = net.freeze();
    return contest::serve("fusejit", held_before, [&](const std::string&) {
      serve(x).eval();
      return contest::StepResult{};
    });
  }
  if (image[0] == 1) return train(net, fj::optim::Adadelta(net.parameters()), x, 10, held_before);
  return train(net, fj::optim::SGD(net.parameters(), {.lr = 0.01, .momentum = 0.9}), x, 1000, held_before);
}

int contend(const contest::Flags& flags) {
  const double held_before = contest::resident_mib("VmRSS");
  fj::Options options = fj::options();
  options.threads = flags.number("threads", 2);
  options.winograd = flags.text("winograd", "off");
  options.memory_limit = flags.text("memory-limit", "none");
  fj::set_options(options);
  fj::manual_seed(1);
  const std::string net = flags.text("net", "resnet50");
  const std::int64_t size = flags.number("size", 224);
  const fj::Shape image = {3, size, size};
  if (net == "convnet") return contend(fj::models::convnet(), flags, {1, 28, 28}, held_before);
  if (net == "resnet18") return contend(fj::models::resnet18(), flags, image, held_before);
  if (net == "resnet50") return contend(fj::models::resnet50(), flags, image, held_before);
  if (net == "mobilenet_v2") return contend(fj::models::mobilenet_v2(), flags, image, held_before);
  throw std::invalid_argument("no network '" + net + "' (convnet, resnet18, resnet50, mobilenet_v2)");
}

}  // namespace

int main(int argc, char** argv) { return contest::run("network_contender", argc, argv, contend); }
