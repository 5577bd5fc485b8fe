// What there is to run on. Nothing here throws: a machine without a GPU is an ordinary machine.
#pragma once

#include <string>
#include <vector>

#include "fusejit/device.h"
#include "fusejit/target.h"

namespace fusejit::runtime {

struct DeviceDescription {
  Device device;
  std::string name;  // "NVIDIA H100", or the processor's instruction set
  std::int64_t memory_bytes = 0;
  Target target;  // what code is generated for
};

// Those that can be used: the CPU, then CUDA devices. Opens none.
std::vector<DeviceDescription> devices();
// Why a device cannot be used, with what to try; empty if it can.
std::string why_unavailable(const Device& device);

}  // namespace fusejit::runtime
