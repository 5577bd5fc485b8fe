// CudaDevice: what one device needs to run plans: its context, the one stream that all its work runs on in order, its
// memory, its staging, and buffers on it.
#pragma once

#include <memory>

#include "runtime/buffer.h"
#include "runtime/cuda/driver/driver.h"
#include "runtime/cuda/driver/stream.h"
#include "runtime/cuda/memory/allocator.h"
#include "runtime/cuda/memory/staging.h"

namespace fusejit::runtime::cuda {

class CudaDevice : public std::enable_shared_from_this<CudaDevice> {
 public:
  // Throws DeviceError.
  static std::shared_ptr<CudaDevice> open(std::shared_ptr<const Driver> driver, int ordinal);

  DeviceContext& context() { return context_; }
  CuStream stream() const { return stream_.get(); }
  DeviceAllocator& memory() { return memory_; }
  Device device() const { return device_; }
  Target target() const { return device_target(context_.properties()); }

  // Fresh memory, its content undefined. Buffers keep the device alive.
  Buffer allocate(const Type& type);
  // Memory of somebody else on this device, until `deleter` is called, when the work that needs it is done; or a copy,
  // where it is not aligned as generated code asks.
  Buffer borrow(CuPointer address, const Type& type, std::function<void()> deleter);
  // A copy on the device of a buffer of the host; returns once the host's bytes may change again.
  Buffer upload(const Buffer& host);
  // A copy on the host of a buffer of this device; waits for the work that computes it.
  Buffer download(const Buffer& buffer);
  // Waits until all work given to the device is done. Errors of kernels that ran since show here.
  void synchronize() { stream_.synchronize(); }
  Staging& staging() { return staging_; }

 private:
  CudaDevice(std::shared_ptr<const Driver> driver, int ordinal);
  Buffer::CopyOut copy_out(CuPointer address);

  // In the order of construction: each relies on those before it.
  DeviceContext context_;
  Stream stream_;
  DeviceAllocator memory_;
  Staging staging_;
  Device device_;
};

// Why there is no such device, with what to try; empty if there is one.
std::string why_no_device(const Device& device, const DriverState& driver = installed_driver());
// The device that a name stands for, opened at first use and kept. Throws DeviceError: no driver, or no such device.
std::shared_ptr<CudaDevice> cuda_device(const Device& device);

}  // namespace fusejit::runtime::cuda
