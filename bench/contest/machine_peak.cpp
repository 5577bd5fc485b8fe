// What the machine does at most: FMAs in registers and copying, the best of a few runs, as one line of JSON. In turn
// with contenders it is asked like one of them and tells FMAs alone: milliseconds of a GFLOP.
//   machine_peak --threads 2 [--in-turn 1]
#include "bench/contest/contender.h"
#include "runtime/cpu/roofline.h"

namespace {

int measure(const contest::Flags& flags) {
  const fusejit::Target target = fusejit::Target::host();
  const int threads = flags.number("threads", 2);
  if (flags.number("in-turn", 0) == 0) {
    const auto peak = fusejit::runtime::roofline(target, threads);
    std::cout << "{\"gflops\": " << peak.gflops << ", \"gigabytes_per_second\": " << peak.gigabytes_per_second << "}\n";
    return 0;
  }
  fusejit::runtime::ThreadPool pool(threads);
  const fusejit::runtime::FmaPeak peak(target);
  if (peak.gflops(pool) == 0) throw std::runtime_error("no FMAs on this processor");
  return contest::serve("machine_peak", 0, [&](const std::string&) {
    return contest::StepResult{.milliseconds = 1e3 / peak.gflops(pool)};
  });
}

}  // namespace

int main(int argc, char** argv) { return contest::run("machine_peak", argc, argv, measure); }
