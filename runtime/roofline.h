// What this machine can do at most, measured: the two lines that no kernel gets above.
#pragma once

#include "fusejit/target.h"

namespace fusejit::runtime {

struct Roofline {
  double gflops = 0;                // f32 FMAs in registers; 0: not known here
  double gigabytes_per_second = 0;  // of a copy, read and written
};
// On so many threads; takes about a fifth of a second the first time, then it is known. The cpu's, whatever the target.
Roofline roofline(const Target& target, int threads);

}  // namespace fusejit::runtime
