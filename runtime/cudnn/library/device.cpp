#include "runtime/cudnn/library/device.h"

#include "ir/base/check.h"

namespace fusejit::runtime::cudnn {
namespace {

constexpr std::int64_t kGiB = std::int64_t{1} << 30;
constexpr int kOldestArchitecture = 75;
constexpr int kDriverVersion = 13000;

constexpr std::array<DeviceDescription, 4> kDevices = {{
    {.name = "A100",
     .compute_capability = 80,
     .multiprocessors = 108,
     .shared_bytes_per_block_optin = 163 << 10,
     .clock_khz = 1410000,
     .memory_clock_khz = 1593000,
     .l2_bytes = 40 << 20,
     .memory_bytes = 80 * kGiB},
    {.name = "H100",
     .compute_capability = 90,
     .multiprocessors = 132,
     .shared_bytes_per_block_optin = 227 << 10,
     .clock_khz = 1980000,
     .memory_clock_khz = 2619000,
     .l2_bytes = 50 << 20,
     .memory_bytes = 80 * kGiB},
    {.name = "H200",
     .compute_capability = 90,
     .multiprocessors = 132,
     .shared_bytes_per_block_optin = 227 << 10,
     .clock_khz = 1980000,
     .memory_clock_khz = 3201000,
     .l2_bytes = 50 << 20,
     .memory_bytes = 141 * kGiB},
    {.name = "B200",
     .compute_capability = 100,
     .multiprocessors = 148,
     .shared_bytes_per_block_optin = 227 << 10,
     .clock_khz = 1965000,
     .memory_clock_khz = 3996000,
     .l2_bytes = 126 << 20,
     .memory_bytes = 180 * kGiB},
}};

}  // namespace

std::string DeviceDescription::json() const {
  return fmt::format(
      R"({{"deviceName":"{}","deviceVer":{},"driverVer":{},"cudaDeviceId":0,"pciDeviceId":0,"isTccDriver":0,)"
      R"("supportCoopLaunch":1,"multiProcessorCount":{},"warpSize":32,"maxGridSize":[2147483647,65535,65535],)"
      R"("maxBlockSize":[1024,1024,64],"maxThreadsPerBlock":1024,"maxThreadsPerSM":{},"maxCtasPerSM":{},)"
      R"("regsPerBlock":65536,"maxRegistersPerSM":65536,"maxSharedMemoryPerBlock":{},)"
      R"("maxSharedMemoryPerBlockOptin":{},"reservedSharedMemoryPerBlock":1024,"smClockRateKHz":{},)"
      R"("memClockRateKHz":{},"l2CacheSize":{},"totalGlobalMem":{}}})",
      name, compute_capability * 10, kDriverVersion, multiprocessors, threads_per_multiprocessor,
      blocks_per_multiprocessor, shared_bytes_per_block, shared_bytes_per_block_optin, clock_khz, memory_clock_khz,
      l2_bytes, memory_bytes);
}

std::span<const DeviceDescription> described_devices() { return kDevices; }

const DeviceDescription& described_device(std::string_view name) {
  for (const DeviceDescription& device : kDevices) {
    if (device.name == name) return device;
  }
  throw UserError(fmt::format("no described device \"{}\": there are A100, H100, H200 and B200", name));
}

const DeviceDescription* device_of(int compute_capability) {
  for (const DeviceDescription& device : kDevices) {
    if (device.compute_capability == compute_capability) return &device;
  }
  return nullptr;
}

void check_architecture(const Library& library, int compute_capability) {
  const auto newest = static_cast<int>(library.api().cudnnGetMaxDeviceVersion()) / 10;
  if (compute_capability >= kOldestArchitecture && compute_capability <= newest) return;
  throw UnsupportedError(fmt::format("cuDNN {} has no code for sm_{}: it serves sm_{} to sm_{}", library.version_text(),
                                     compute_capability, kOldestArchitecture, newest));
}

Descriptor describe_device(const std::shared_ptr<const Library>& library, const DeviceDescription& device) {
  check_architecture(*library, device.compute_capability);
  Descriptor descriptor(library, CUDNN_BACKEND_DEVICEPROP_DESCRIPTOR);
  descriptor.set(CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION, std::string_view(device.json()));
  descriptor.finalize();
  return descriptor;
}

Descriptor read_device(const std::shared_ptr<const Library>& library, int ordinal) {
  Descriptor descriptor(library, CUDNN_BACKEND_DEVICEPROP_DESCRIPTOR);
  const std::int32_t id = ordinal;
  descriptor.set_raw(CUDNN_ATTR_DEVICEPROP_DEVICE_ID, CUDNN_TYPE_INT32, 1, &id);
  descriptor.finalize();
  return descriptor;
}

}  // namespace fusejit::runtime::cudnn
