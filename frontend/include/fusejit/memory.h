// Bytes in use by tensors, plans' arenas and workspace, over all threads, on a device: the host by default. Borrowed
// memory does not count. DeviceError for a device that cannot be used.
//
//   fj::memory::reset_peak();
//   fj::Tensor x = fj::ones({256, 1024}).eval();
//   std::int64_t bytes = fj::memory::peak();  // at least 1 MiB
#pragma once

#include <cstdint>

#include "fusejit/device.h"

namespace fusejit::memory {

// Now.
std::int64_t allocated(const Device& device = {});
// The most since the start or the last reset.
std::int64_t peak(const Device& device = {});
// The peak counts from what is allocated now.
void reset_peak(const Device& device = {});
// Of a CUDA device: no more than so many bytes are taken from it, what is kept for reuse included; 0: all it has.
// UserError for the cpu.
void set_limit(std::int64_t bytes, const Device& device);

}  // namespace fusejit::memory
