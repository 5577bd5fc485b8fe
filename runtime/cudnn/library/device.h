// What cuDNN wants to know of a device in order to plan for it: read from the device where there is one, else
// described. A described device makes every planning decision testable without a GPU.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "runtime/cudnn/library/descriptor.h"

namespace fusejit::runtime::cudnn {

// Figures of one device, as the driver reports them. Every one is mandatory for cuDNN.
struct DeviceDescription {
  std::string_view name;
  int compute_capability = 0;  // 90 for sm_90
  int multiprocessors = 0;
  int shared_bytes_per_block = 48 << 10;
  int shared_bytes_per_block_optin = 0;
  int threads_per_multiprocessor = 2048;
  int blocks_per_multiprocessor = 32;
  int clock_khz = 0;
  int memory_clock_khz = 0;
  int l2_bytes = 0;
  std::int64_t memory_bytes = 0;

  // The text that cuDNN reads (CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION).
  std::string json() const;
};

// A100, H100, H200 and B200, from NVIDIA's data sheets and occupancy tables.
std::span<const DeviceDescription> described_devices();
// The described device of that name ("A100"). Throws UserError.
const DeviceDescription& described_device(std::string_view name);
// A described device of that architecture (80, 90, 100), or nullptr.
const DeviceDescription* device_of(int compute_capability);

// Throws UnsupportedError for an architecture for which this cuDNN has no code: it would plan and then fail when run.
void check_architecture(const Library& library, int compute_capability);
// A finalised device descriptor from a description's text. Checks its architecture.
Descriptor describe_device(const std::shared_ptr<const Library>& library, const DeviceDescription& device);
// A finalised device descriptor of an existing device.
Descriptor read_device(const std::shared_ptr<const Library>& library, int ordinal);

}  // namespace fusejit::runtime::cudnn
