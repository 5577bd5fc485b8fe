// erf and erfc.
#pragma once

#include <string_view>

namespace fusejit::ir::fragments {

inline constexpr std::string_view kErfF32 = "";
inline constexpr std::string_view kErfF64 = "";
inline constexpr std::string_view kErfcF32 = "";
inline constexpr std::string_view kErfcF64 = "";

}  // namespace fusejit::ir::fragments
