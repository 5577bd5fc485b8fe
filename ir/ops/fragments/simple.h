// Fragments of ops that are a few instructions.
#pragma once

#include <string_view>

namespace fusejit::ir::fragments {

// -1, 0 or 1; NaN stays. +0 and -0 give themselves.
inline constexpr std::string_view kSignF32 = R"(
  %p = gt(%x, 0) : bool
  %n = lt(%x, 0) : bool
  %m = where(%n, -1, %x) : f32
  %r = where(%p, 1, %m) : f32
  yield %r)";
inline constexpr std::string_view kSignF64 = R"(
  %p = gt(%x, 0) : bool
  %n = lt(%x, 0) : bool
  %m = where(%n, -1, %x) : f64
  %r = where(%p, 1, %m) : f64
  yield %r)";

inline constexpr std::string_view kReciprocalF32 = "%r = div(1, %x) : f32  yield %r";
inline constexpr std::string_view kReciprocalF64 = "%r = div(1, %x) : f64  yield %r";

// Two correct roundings: within 1 ulp. Not the approximate instruction, whose bits differ between processors.
inline constexpr std::string_view kRsqrtF32 = "%s = sqrt(%x) : f32  %r = div(1, %s) : f32  yield %r";
inline constexpr std::string_view kRsqrtF64 = "%s = sqrt(%x) : f64  %r = div(1, %s) : f64  yield %r";

inline constexpr std::string_view kIsnanF32 = "%r = ne(%x, %x) : bool  yield %r";
inline constexpr std::string_view kIsnanF64 = "%r = ne(%x, %x) : bool  yield %r";
inline constexpr std::string_view kIsinfF32 = "%a = abs(%x) : f32  %r = eq(%a, inf) : bool  yield %r";
inline constexpr std::string_view kIsinfF64 = "%a = abs(%x) : f64  %r = eq(%a, inf) : bool  yield %r";
inline constexpr std::string_view kIsfiniteF32 = "%a = abs(%x) : f32  %r = lt(%a, inf) : bool  yield %r";
inline constexpr std::string_view kIsfiniteF64 = "%a = abs(%x) : f64  %r = lt(%a, inf) : bool  yield %r";

}  // namespace fusejit::ir::fragments
