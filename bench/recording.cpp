// What recording costs: nanoseconds an operation to record, and microseconds to look a known trace up.
#include <fmt/format.h>

#include <chrono>

#include "fusejit/fusejit.h"

namespace {

template <class F>
double best_seconds(F f) {
  double best = 1e9;
  for (int i = 0; i < 7; ++i) {
    const auto start = std::chrono::steady_clock::now();
    f();
    best = std::min(best, std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
  }
  return best;
}

}  // namespace

int main() {
  namespace fj = fusejit;
  fj::set_options({.engine = "graph_interpreter"});
  const fj::Tensor x = fj::ones({8}).eval(), y = fj::ones({8}).eval(), image = fj::ones({1, 4, 8, 8}).eval(),
                   w = fj::ones({4, 4, 3, 3}).eval();
  constexpr int kOps = 5000;
  const auto cost = [&](const char* what, auto op) {
    fj::Tensor last;
    const double seconds = best_seconds([&] {
      fj::Tensor t = x;
      for (int i = 0; i < kOps; ++i) t = op(t);
      last = t;
    });
    fmt::print("{:<22} {:7.0f} ns an operation\n", what, seconds / kOps * 1e9);
  };
  cost("add(tensor, tensor)", [&](const fj::Tensor& t) { return t + y; });
  cost("mul(tensor, number)", [&](const fj::Tensor& t) { return t * 0.3; });
  cost("relu", [&](const fj::Tensor& t) { return fj::relu(t); });
  cost("sum", [&](const fj::Tensor& t) { return fj::sum(t, {0}, true) + t; });
  cost("conv2d", [&](const fj::Tensor& t) { return fj::conv2d(image, w, {.padding = 1}), t; });

  fj::nn::Sequential net = fj::models::convnet();
  fj::optim::Adadelta opt(net.parameters());
  const fj::Tensor images = fj::ones({2, 1, 28, 28}).eval(), labels = fj::zeros({2}, fj::i64).eval();
  const double seconds = best_seconds([&] { fj::nll_loss(net(images), labels); });
  fmt::print("{:<22} {:7.1f} us\n", "network forward", seconds * 1e6);
  return 0;
}
