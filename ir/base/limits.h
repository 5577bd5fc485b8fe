// What a graph's text may have at most.
#pragma once

#include <cstddef>

namespace fusejit::ir {

inline constexpr std::size_t kMaxName = 255;  // bytes
inline constexpr std::size_t kMaxListNumbers = 65536;

}  // namespace fusejit::ir
