// What this machine can do at most, measured: the two lines that no kernel gets above.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>

#include "fusejit/target.h"
#include "runtime/cpu/thread_pool.h"

namespace fusejit::codegen {
struct CompiledKernel;
}

namespace fusejit::runtime {

// Independent accumulators of FMAs in registers: no kernel does more.
class FmaPeak {
 public:
  explicit FmaPeak(const Target& target);
  // f32 GFLOP/s of one run of every thread, wall time, about three milliseconds; 0 where the target's FMAs do not run
  // here.
  double gflops(ThreadPool& pool) const;

 private:
  std::shared_ptr<const codegen::CompiledKernel> code_;  // null: does not run here
  double flop_ = 0;                                      // of one thread
};

struct Roofline {
  double gflops = 0;                // f32 FMAs in registers; 0: not known here
  double gigabytes_per_second = 0;  // of a copy, read and written
  // What so much takes at least: for the bytes or for the arithmetic, whichever is longer; 0 where nothing is known.
  double least_milliseconds(std::int64_t bytes, double flop) const {
    const double memory = gigabytes_per_second > 0 ? static_cast<double>(bytes) * 1e-6 / gigabytes_per_second : 0;
    return std::max(memory, gflops > 0 ? flop * 1e-6 / gflops : 0);
  }
};
// On so many threads; takes about a fifth of a second the first time, then it is known. The cpu's, whatever the target.
Roofline roofline(const Target& target, int threads);

}  // namespace fusejit::runtime
