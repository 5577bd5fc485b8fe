// What a schedule may ask for at most.
#pragma once

#include <cstdint>

namespace fusejit::scheduler {

inline constexpr std::int64_t kMostUnrolled = 64;   // copies of a loop's body
inline constexpr std::int64_t kMostThreads = 1024;  // of a block

}  // namespace fusejit::scheduler
