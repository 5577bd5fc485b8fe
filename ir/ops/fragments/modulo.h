// floor_divide, remainder, fmod.
#pragma once

#include <string_view>

namespace fusejit::ir::fragments {

inline constexpr std::string_view kFloorDivideF32 = "";
inline constexpr std::string_view kFloorDivideF64 = "";
inline constexpr std::string_view kRemainderF32 = "";
inline constexpr std::string_view kRemainderF64 = "";
inline constexpr std::string_view kFmodF32 = "";
inline constexpr std::string_view kFmodF64 = "";

}  // namespace fusejit::ir::fragments
