// pow.
#pragma once

#include <string_view>

namespace fusejit::ir::fragments {

inline constexpr std::string_view kPowF32 = "";
inline constexpr std::string_view kPowF64 = "";

}  // namespace fusejit::ir::fragments
