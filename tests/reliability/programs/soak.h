// Training on many shapes for long, and what the process holds meanwhile.
#pragma once

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "fusejit/fusejit.h"

namespace soak {

namespace fj = fusejit;

inline std::int64_t entries_of(const char* folder) {
  return std::distance(std::filesystem::directory_iterator(folder), std::filesystem::directory_iterator());
}
inline std::int64_t resident() {
  std::int64_t all = 0, here = 0;
  std::ifstream("/proc/self/statm") >> all >> here;
  return here * 4096;
}

struct Cycles {
  std::vector<std::int64_t> resident, files, threads, reserved, peak, hits, plans, compiled;
  void note() {
    const fj::Statistics s = fj::stats();
    resident.push_back(soak::resident()), files.push_back(entries_of("/proc/self/fd"));
    threads.push_back(entries_of("/proc/self/task"));
    reserved.push_back(fj::memory::reserved()), peak.push_back(fj::memory::peak());
    hits.push_back(s.plan_cache_hits), plans.push_back(s.plans_made), compiled.push_back(s.kernels_compiled);
  }
};

// A training step for each of `shapes` image sizes, and a forward pass for every fourth, `cycles` times over.
inline Cycles train(int shapes, int cycles) {
  Cycles noted;
  fj::nn::Sequential net(fj::nn::Conv2d(1, 4, 3), fj::nn::ReLU(), fj::nn::AdaptiveAvgPool2d(1), fj::nn::Flatten(),
                         fj::nn::Linear(4, 3));
  fj::optim::SGD opt(net.parameters(), {.lr = 0.01});
  auto step =
      fj::train_step(net, opt, [&](const fj::Tensor& x, const fj::Tensor& y) { return fj::cross_entropy(net(x), y); });
  const fj::Tensor y = fj::from_host(std::vector<std::int64_t>{0, 2}, {2});
  for (int c = 0; c < cycles; ++c) {
    for (int s = 0; s < shapes; ++s) {
      const std::int64_t height = 16 + 7 * (s % 20), width = 16 + 5 * (s / 20);
      const std::vector<float> pixels(static_cast<std::size_t>(2 * height * width), 0.5F);
      const fj::Tensor x = fj::from_host(pixels, {2, 1, height, width});
      step(x, y);
      if (s % 4 != 0) continue;
      const fj::NoGrad no_grad;
      net(x).eval();
    }
    noted.note();
  }
  return noted;
}

// Traces, plans and kernels too.
inline void forget() {
  fj::set_options({});
  fj::memory::release();
}

inline void run(int shapes, int cycles) {
  train(4, 1);  // what the compiler and the library keep for good is there now
  forget();
  const std::int64_t before = resident();
  const Cycles noted = train(shapes, cycles);
  fj::memory::release();
  const std::int64_t released = resident(), allocated = fj::memory::allocated(), reserved = fj::memory::reserved();
  forget();
  fmt::print(
      "{{\"before\": {}, \"resident\": [{}], \"files\": [{}], \"threads\": [{}], \"reserved\": [{}], \"peak\": [{}], "
      "\"hits\": [{}], \"plans\": [{}], \"compiled\": [{}], \"released\": {}, \"allocated_then\": {}, "
      "\"reserved_then\": {}, \"forgotten\": {}}}\n",
      before, fmt::join(noted.resident, ","), fmt::join(noted.files, ","), fmt::join(noted.threads, ","),
      fmt::join(noted.reserved, ","), fmt::join(noted.peak, ","), fmt::join(noted.hits, ","),
      fmt::join(noted.plans, ","), fmt::join(noted.compiled, ","), released, allocated, reserved, resident());
}

}  // namespace soak
