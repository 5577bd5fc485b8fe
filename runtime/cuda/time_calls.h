// Library calls tried on this device: whether one runs at all, and which of several that compute the same is the
// fastest.
#pragma once

#include <memory>
#include <span>
#include <string>

#include "runtime/cuda/device.h"
#include "runtime/cuda/library_call.h"

namespace fusejit::runtime::cuda {

// Runs every call on memory of its own (zeros; `bytes` of each of its values) and a stream of its own, a few times in
// turns, and compares the shortest times. The first of equal ones; a call that fails is out, DeviceError if all do.
std::size_t fastest(CudaDevice& device, std::span<const std::shared_ptr<const LibraryCall>> calls,
                    std::span<const std::int64_t> bytes);

// Runs the call once on such memory. What the library says if it does not run it: that it plans a call is no promise.
// Empty if it does, or if there is no room to try. Throws DeviceError if the device is lost by it.
std::string why_it_fails(CudaDevice& device, const LibraryCall& call, std::span<const std::int64_t> bytes);

}  // namespace fusejit::runtime::cuda
