// Generated CUDA programs under the address and undefined-behaviour sanitizers: a program of its own that launches
// every kernel once on heap buffers of exactly their size, filled with zeros.
#pragma once

#include "tests/support/cuda_shim/shim.h"

namespace fusejit::test {

struct Sanitized {
  std::string said;      // of compiler or program; "": nothing was found
  bool skipped = false;  // this compiler has no sanitizers
};

Sanitized run_sanitized(const Shim& shim, const std::vector<ir::Kernel>& kernels);

}  // namespace fusejit::test
