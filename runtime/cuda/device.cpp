#include "runtime/cuda/device.h"

#include <map>
#include <mutex>

#include "ir/base/check.h"

namespace fusejit::runtime::cuda {

CudaDevice::CudaDevice(std::shared_ptr<const Driver> driver, int ordinal)
    : context_(std::move(driver), ordinal),
      stream_(context_),
      memory_(context_, stream_.get()),
      staging_(context_, stream_.get()) {
  device_.kind = Device::Kind::cuda;
  device_.ordinal = ordinal;
}

std::shared_ptr<CudaDevice> CudaDevice::open(std::shared_ptr<const Driver> driver, int ordinal) {
  return std::shared_ptr<CudaDevice>(new CudaDevice(std::move(driver), ordinal));
}

Buffer::CopyOut CudaDevice::copy_out(CuPointer address) {
  return [self = shared_from_this(), address](void* to, std::int64_t bytes) {
    self->staging_.download(to, address, bytes);
  };
}

Buffer CudaDevice::allocate(const Type& type) {
  DeviceBlock block(memory_, std::max<std::int64_t>(type.bytes(), 1));
  const CuPointer address = block.get();
  const auto release = [self = shared_from_this(), address] { self->memory_.deallocate(address); };
  Buffer buffer = Buffer::on_device(device_, address, type, release, copy_out(address));
  block.give_up();
  return buffer;
}

Buffer CudaDevice::borrow(CuPointer address, const Type& type, std::function<void()> deleter) {
  constexpr CuPointer kAlignment = 64;  // scheduler/lower/group_kernel.cpp
  // Somebody else may reuse the memory in another stream's order.
  const auto release = [self = shared_from_this(), deleter = std::move(deleter)] {
    try {
      self->synchronize();
    } catch (const Error&) {  // nothing runs there any more; who asks for a value hears of it
    }
    deleter();
  };
  const Buffer theirs = Buffer::borrow_on_device(device_, address, type, release, copy_out(address));
  if (address % kAlignment == 0) return theirs;
  Buffer own = allocate(type);
  context_.call(context_.driver().copy_on_device, own.address(), address, static_cast<std::size_t>(type.bytes()),
                stream_.get());
  return own;
}

Buffer CudaDevice::upload(const Buffer& host) {
  Buffer buffer = allocate(host.type());
  staging_.upload(buffer.address(), host.data(), host.bytes());
  return buffer;
}

Buffer CudaDevice::download(const Buffer& buffer) {
  FJ_ASSERT(buffer.device() == device_, "{} is asked for a value of {}", device_.str(), buffer.device().str());
  Buffer host = Buffer::allocate(buffer.type());
  staging_.download(host.data(), buffer.address(), buffer.bytes());
  return host;
}

std::string why_no_device(const Device& device, const DriverState& driver) {
  if (!driver.driver) return fmt::format("{}: {}", device.str(), driver.why_not);
  if (device.ordinal < driver.devices) return "";
  return fmt::format("{}: there {} {} device{}, counted from 0 (see `fusejit doctor`)", device.str(),
                     driver.devices == 1 ? "is" : "are", driver.devices, driver.devices == 1 ? "" : "s");
}

std::shared_ptr<CudaDevice> cuda_device(const Device& device) {
  // Kept to the end of the process and never destroyed: buffers in static objects may outlive main().
  struct Opened {
    std::mutex mutex;
    std::map<int, std::shared_ptr<CudaDevice>> devices;
  };
  static Opened* opened = new Opened;
  if (const std::string why = why_no_device(device); !why.empty()) throw DeviceError(why);
  const std::lock_guard lock(opened->mutex);
  std::shared_ptr<CudaDevice>& found = opened->devices[device.ordinal];
  if (!found) found = CudaDevice::open(installed_driver().driver, device.ordinal);
  return found;
}

}  // namespace fusejit::runtime::cuda
