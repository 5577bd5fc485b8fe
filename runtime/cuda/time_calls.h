// Which of several library calls that compute the same is the fastest on this device.
#pragma once

#include <memory>
#include <span>

#include "runtime/cuda/device.h"
#include "runtime/cuda/library_call.h"

namespace fusejit::runtime::cuda {

// Runs every call on memory of its own (zeros; `bytes` of each of its values) and a stream of its own, a few times in
// turns, and compares the shortest times. The first of equal ones; a call that fails is out, DeviceError if all do.
std::size_t fastest(CudaDevice& device, std::span<const std::shared_ptr<const LibraryCall>> calls,
                    std::span<const std::int64_t> bytes);

}  // namespace fusejit::runtime::cuda
