// exp, exp2, expm1 and what is made of them: sigmoid, tanh.
#pragma once

#include <string_view>

namespace fusejit::ir::fragments {

inline constexpr std::string_view kExpF32 = "";
inline constexpr std::string_view kExpF64 = "";
inline constexpr std::string_view kExp2F32 = "";
inline constexpr std::string_view kExp2F64 = "";
inline constexpr std::string_view kExpm1F32 = "";
inline constexpr std::string_view kExpm1F64 = "";
inline constexpr std::string_view kSigmoidF32 = "";
inline constexpr std::string_view kSigmoidF64 = "";
inline constexpr std::string_view kTanhF32 = "";
inline constexpr std::string_view kTanhF64 = "";

}  // namespace fusejit::ir::fragments
