// What there is to run on, as users ask for it.
#include "runtime/devices.h"

#include "fusejit/runtime.h"

namespace fusejit {

std::vector<DeviceInfo> devices() {
  std::vector<DeviceInfo> found;
  for (const runtime::DeviceDescription& d : runtime::devices()) {
    found.push_back({d.device, d.name, d.memory_bytes, d.target.str()});
  }
  return found;
}

std::string why_unavailable(const Device& device) { return runtime::why_unavailable(device); }

}  // namespace fusejit
