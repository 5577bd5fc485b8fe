// What has been taken of one memory: the machine's, or a device's.
#pragma once

#include <cstdint>

namespace fusejit::runtime {

struct MemoryStatistics {
  std::int64_t allocated = 0;  // bytes handed out now
  std::int64_t peak = 0;       // the most since the last reset
  std::int64_t reserved = 0;   // bytes taken from the system or the device, with what is kept for reuse
};

}  // namespace fusejit::runtime
