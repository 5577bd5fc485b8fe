// What a network takes to serve: ResNet-50 as it is in evaluation mode and frozen, call by call in turn. The first
// call of each plans, compiles and, frozen, packs.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>

#include "bench/command_line/options.h"
#include "fusejit/fusejit.h"

namespace fj = fusejit;

namespace {

template <class F>
double milliseconds(F f) {
  const auto start = std::chrono::steady_clock::now();
  f();
  return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
}

struct Contender {
  const char* name;
  std::function<fj::Tensor(const fj::Tensor&)> call;
  double first = 0;
  std::vector<double> times = {};
  fj::PlanStatistics plan = {};
};

}  // namespace

int main(int argc, char** argv) {
  std::int64_t batch = 1, size = 224;
  int rounds = 20, threads = 0;
  const auto end = fusejit::bench::read_options(
      argc, argv, "ResNet-50 in evaluation mode and frozen",
      {{"--batch", &batch, "images a call", fusejit::bench::Range::positive},
       {"--size", &size, "pixels a side", fusejit::bench::Range::positive},
       {"--rounds", &rounds, "calls that are timed", fusejit::bench::Range::positive},
       {"--threads", &threads, "0: every processor", fusejit::bench::Range::not_negative}});
  if (end) return *end;

  fj::set_options({.threads = threads});
  fj::manual_seed(1);
  auto net = fj::models::resnet50();
  net.eval();
  const fj::Frozen serve = net.freeze();
  const fj::Tensor x = fj::rand({batch, 3, size, size}).eval();
  Contender contenders[] = {{"eval()", [&](const fj::Tensor& t) { return net(t); }},
                            {"freeze()", [&](const fj::Tensor& t) { return serve(t); }}};
  for (Contender& c : contenders) c.first = milliseconds([&] { c.call(x).eval(); });
  for (int r = 0; r < rounds; ++r) {
    for (Contender& c : contenders) {
      c.times.push_back(milliseconds([&] { c.call(x).eval(); }));
      c.plan = fj::stats().last_plan;
    }
  }
  fmt::print("{:<10} {:>10} {:>10} {:>8} {:>8} {:>9} {:>8}\n", "", "first, ms", "median, ms", "lowest", "highest",
             "kernels", "MiB");
  for (Contender& c : contenders) {
    std::sort(c.times.begin(), c.times.end());
    fmt::print("{:<10} {:>10.1f} {:>10.2f} {:>8.2f} {:>8.2f} {:>9} {:>8.1f}\n", c.name, c.first,
               c.times[c.times.size() / 2], c.times.front(), c.times.back(), c.plan.kernels,
               static_cast<double>(c.plan.ledger_bytes) / (1 << 20));
  }
}
