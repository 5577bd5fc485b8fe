// What the machine does at most, as one line of JSON: FMAs in registers and copying, the best of a few runs.
//   machine_peak --threads 2
#include "bench/contest/contender.h"
#include "runtime/cpu/roofline.h"

namespace {

int measure(const contest::Flags& flags) {
  const auto peak = fusejit::runtime::roofline(fusejit::Target::host(), flags.number("threads", 2));
  std::cout << "{\"gflops\": " << peak.gflops << ", \"gigabytes_per_second\": " << peak.gigabytes_per_second << "}\n";
  return 0;
}

}  // namespace

int main(int argc, char** argv) { return contest::run("machine_peak", argc, argv, measure); }
