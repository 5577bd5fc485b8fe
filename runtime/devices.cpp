#include "runtime/devices.h"

#include "fusejit/error.h"
#include "runtime/cpu/memory.h"
#include "runtime/cuda/backend.h"

namespace fusejit::runtime {
namespace {

// Of a device that the driver lists. Throws DeviceError.
cuda::DeviceProperties properties_of(const Device& device) {
  return cuda::device_properties(*cuda::installed_driver().driver, device.ordinal);
}

}  // namespace

std::string why_unavailable(const Device& device) {
  if (device.is_cpu()) return "";
  if (std::string why = cuda::why_no_device(device); !why.empty()) return why;
  try {
    return why_no_kernels(device.str(), properties_of(device).compute_capability);
  } catch (const Error& error) {
    return device.str() + ": " + error.what();
  }
}

std::vector<DeviceDescription> devices() {
  const Target host = Target::host();
  std::vector<DeviceDescription> found = {{Device(), std::string(name(host.isa)), machine_memory(), host}};
  for (Device device("cuda"); device.ordinal < cuda::installed_driver().devices; ++device.ordinal) {
    if (!why_unavailable(device).empty()) continue;
    const cuda::DeviceProperties properties = properties_of(device);
    found.push_back({device, properties.name, properties.memory_bytes, cuda::device_target(properties)});
  }
  return found;
}

}  // namespace fusejit::runtime
