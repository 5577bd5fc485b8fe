// Bytes of host memory in use by tensors, plans' arenas and workspace, over all threads. Borrowed memory does not
// count.
//
//   fj::memory::reset_peak();
//   fj::Tensor x = fj::ones({256, 1024}).eval();
//   std::int64_t bytes = fj::memory::peak();  // at least 1 MiB
#pragma once

#include <cstdint>

namespace fusejit::memory {

// Now.
std::int64_t allocated();
// The most since the start or the last reset.
std::int64_t peak();
// The peak counts from what is allocated now.
void reset_peak();

}  // namespace fusejit::memory
