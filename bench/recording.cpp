// What everything around the kernels costs: recording an operation, looking a known plan up, a small evaluation, and
// the host's part of a training step.
#include <fmt/format.h>

#include <chrono>

#include "bench/measure.h"
#include "frontend/models/named.h"
#include "fusejit/fusejit.h"
#include "runtime/session.h"

namespace {

namespace fj = fusejit;

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

void recording() {
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
}

void plan_cache() {
  for (const char* source : {"convnet@2:train", "resnet50@1x3x32x32"}) {
    const fj::models::ModelGraph model = fj::models::model_graph(source);
    const std::unique_ptr<bool[]> donated(new bool[model.donated.size()]);
    std::copy(model.donated.begin(), model.donated.end(), donated.get());
    fj::runtime::Session session({.engine = fj::runtime::Engine::graph_interpreter, .checks = {}});
    const std::span<const bool> given(donated.get(), model.donated.size());
    session.plan(model.graph, given);
    constexpr int kTimes = 1000;
    const double seconds = best_seconds([&] {
      for (int i = 0; i < kTimes; ++i) session.plan(model.graph, given);
    });
    fmt::print("{:<22} {:7.2f} us, {} nodes of {}\n", "plan-cache hit", seconds / kTimes * 1e6,
               model.graph.nodes().size(), source);
  }
}

void evaluations() {
  for (const int threads : {1, 2}) {
    fj::set_options({.engine = "compiled", .threads = threads});
    const fj::Tensor x = fj::ones({8}).eval();
    const auto once = [&] { fj::relu(x * 2 + 1).eval(); };
    once();
    constexpr int kTimes = 2000;
    const double seconds = best_seconds([&] {
      for (int i = 0; i < kTimes; ++i) once();
    });
    fmt::print("{:<22} {:7.2f} us, 8 elements, {} threads\n", "relu(x*2 + 1).eval()", seconds / kTimes * 1e6, threads);
  }
}

// A training step of one image, less what its kernels take.
void step_overhead() {
  fj::set_options({.engine = "compiled", .threads = 1});
  fj::nn::Sequential net = fj::models::convnet();
  fj::optim::Adadelta opt(net.parameters());
  auto step =
      fj::train_step(net, opt, [&](const fj::Tensor& x, const fj::Tensor& y) { return fj::nll_loss(net(x), y); });
  const fj::Tensor images = fj::ones({1, 1, 28, 28}).eval(), labels = fj::zeros({1}, fj::i64).eval();
  std::vector<double> host, kernels;
  for (int i = 0; i < 200; ++i) {
    const auto start = std::chrono::steady_clock::now();
    step(images, labels).eval();
    const auto whole = std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - start).count();
    kernels.push_back(fj::stats().last_plan.kernel_milliseconds * 1e3);
    host.push_back(whole - kernels.back());
  }
  const auto median = [](const std::vector<double>& v) { return fj::bench::quantile(v, 0.5); };
  fmt::print("{:<22} {:7.1f} us for the host, {:.1f} us in {} kernels\n", "training step, 1 image", median(host),
             median(kernels), fj::stats().last_plan.kernels);
}

}  // namespace

int main() {
  recording();
  plan_cache();
  evaluations();
  step_overhead();
}
