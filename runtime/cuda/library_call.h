// A step of a plan that a library performs (cuDNN): opaque to the executor, which gives it a stream and addresses.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "runtime/cuda/driver/driver_api.h"

namespace fusejit::runtime::cuda {

class LibraryCall {
 public:
  virtual ~LibraryCall() = default;
  // Puts the work on the stream and returns; `pointers` are the addresses of the step's plan values, in their order,
  // `workspace` that of workspace_bytes() of memory (256-byte aligned, an address even for none). Throws DeviceError.
  // The context is current. The second run with the same addresses is captured into a CUDA graph and then replayed
  // without a call: what a call does must depend on its arguments alone, and it must not wait for the device.
  virtual void execute(CuStream stream, std::span<const CuPointer> pointers, CuPointer workspace) const = 0;
  virtual std::int64_t workspace_bytes() const = 0;
  // For people: "cudnn conv2d, engine 57, 2 MiB of workspace".
  virtual std::string describe() const = 0;
};

}  // namespace fusejit::runtime::cuda
