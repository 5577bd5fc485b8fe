// Logarithms.
#pragma once

#include <string_view>

namespace fusejit::ir::fragments {

inline constexpr std::string_view kLogF32 = "";
inline constexpr std::string_view kLogF64 = "";
inline constexpr std::string_view kLog2F32 = "";
inline constexpr std::string_view kLog2F64 = "";
inline constexpr std::string_view kLog10F32 = "";
inline constexpr std::string_view kLog10F64 = "";
inline constexpr std::string_view kLog1pF32 = "";
inline constexpr std::string_view kLog1pF64 = "";

}  // namespace fusejit::ir::fragments
