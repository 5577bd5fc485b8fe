// Logarithms. x = 2^e·m with m in [2/3, 4/3) by integer arithmetic on the bits (N. Juffa), denormals scaled by 2^23 first;
// log m = f − f²/2 + f³·P(f) with f = m − 1.
#pragma once

#include <string_view>

namespace fusejit::ir::fragments {

inline constexpr std::string_view kLogF32 = R"(
  %small = lt(%x, 1.17549435e-38) : bool
  %scaled = mul(%x, 8388608) : f32
  %y = where(%small, %scaled, %x) : f32
  %e0 = where(%small, -23, 0) : f32
  %b = bits(%y) : u32
  %d = sub(%b, 1059760811) : u32
  %eb = bitwise_and(%d, 4286578688) : u32
  %mb = sub(%b, %eb) : u32
  %m = from_bits(%mb) : f32
  %ei = cast(%eb) : i32
  %ef = cast(%ei) : f32
  %e = fma(%ef, 1.1920929e-07, %e0) : f32
  %f = sub(%m, 1) : f32
  %s = mul(%f, %f) : f32
  %p0 = fma(%f, -1.2946615e-01, 1.3992473e-01) : f32
  %p1 = fma(%p0, %f, -1.2172859e-01) : f32
  %p2 = fma(%p1, %f, 1.400444e-01) : f32
  %p3 = fma(%p2, %f, -1.6681214e-01) : f32
  %p4 = fma(%p3, %f, 2.0010477e-01) : f32
  %p5 = fma(%p4, %f, -2.4999784e-01) : f32
  %p6 = fma(%p5, %f, 3.3333215e-01) : f32
  %p7 = fma(%p6, %f, -0.5) : f32
  %l = fma(%p7, %s, %f) : f32
  %r = fma(%e, 0.6931472, %l) : f32
  %finite = lt(%x, inf) : bool
  %r1 = where(%finite, %r, %x) : f32
  %negative = lt(%x, 0) : bool
  %r2 = where(%negative, nan, %r1) : f32
  %zero = eq(%x, 0) : bool
  %z = where(%zero, -inf, %r2) : f32
  yield %z)";
inline constexpr std::string_view kLogF64 = "";

inline constexpr std::string_view kLog2F32 = R"(
  %small = lt(%x, 1.17549435e-38) : bool
  %scaled = mul(%x, 8388608) : f32
  %y = where(%small, %scaled, %x) : f32
  %e0 = where(%small, -23, 0) : f32
  %b = bits(%y) : u32
  %d = sub(%b, 1059760811) : u32
  %eb = bitwise_and(%d, 4286578688) : u32
  %mb = sub(%b, %eb) : u32
  %m = from_bits(%mb) : f32
  %ei = cast(%eb) : i32
  %ef = cast(%ei) : f32
  %e = fma(%ef, 1.1920929e-07, %e0) : f32
  %f = sub(%m, 1) : f32
  %s = mul(%f, %f) : f32
  %p0 = fma(%f, -1.2946615e-01, 1.3992473e-01) : f32
  %p1 = fma(%p0, %f, -1.2172859e-01) : f32
  %p2 = fma(%p1, %f, 1.400444e-01) : f32
  %p3 = fma(%p2, %f, -1.6681214e-01) : f32
  %p4 = fma(%p3, %f, 2.0010477e-01) : f32
  %p5 = fma(%p4, %f, -2.4999784e-01) : f32
  %p6 = fma(%p5, %f, 3.3333215e-01) : f32
  %p7 = fma(%p6, %f, -0.5) : f32
  %l = fma(%p7, %s, %f) : f32
  %r = fma(%l, 1.442695, %e) : f32
  %finite = lt(%x, inf) : bool
  %r1 = where(%finite, %r, %x) : f32
  %negative = lt(%x, 0) : bool
  %r2 = where(%negative, nan, %r1) : f32
  %zero = eq(%x, 0) : bool
  %z = where(%zero, -inf, %r2) : f32
  yield %z)";
inline constexpr std::string_view kLog2F64 = R"()";

inline constexpr std::string_view kLog10F32 = R"(
  %small = lt(%x, 1.17549435e-38) : bool
  %scaled = mul(%x, 8388608) : f32
  %y = where(%small, %scaled, %x) : f32
  %e0 = where(%small, -23, 0) : f32
  %b = bits(%y) : u32
  %d = sub(%b, 1059760811) : u32
  %eb = bitwise_and(%d, 4286578688) : u32
  %mb = sub(%b, %eb) : u32
  %m = from_bits(%mb) : f32
  %ei = cast(%eb) : i32
  %ef = cast(%ei) : f32
  %e = fma(%ef, 1.1920929e-07, %e0) : f32
  %f = sub(%m, 1) : f32
  %s = mul(%f, %f) : f32
  %p0 = fma(%f, -1.2946615e-01, 1.3992473e-01) : f32
  %p1 = fma(%p0, %f, -1.2172859e-01) : f32
  %p2 = fma(%p1, %f, 1.400444e-01) : f32
  %p3 = fma(%p2, %f, -1.6681214e-01) : f32
  %p4 = fma(%p3, %f, 2.0010477e-01) : f32
  %p5 = fma(%p4, %f, -2.4999784e-01) : f32
  %p6 = fma(%p5, %f, 3.3333215e-01) : f32
  %p7 = fma(%p6, %f, -0.5) : f32
  %l = fma(%p7, %s, %f) : f32
  %l1 = mul(%l, 0.4342945) : f32
  %r = fma(%e, 0.30103, %l1) : f32
  %finite = lt(%x, inf) : bool
  %r1 = where(%finite, %r, %x) : f32
  %negative = lt(%x, 0) : bool
  %r2 = where(%negative, nan, %r1) : f32
  %zero = eq(%x, 0) : bool
  %z = where(%zero, -inf, %r2) : f32
  yield %z)";
inline constexpr std::string_view kLog10F64 = R"()";

// 1 + x = 2^e·(1 + f) with f = x·2^−e + (2^−e − 1), exact where it matters (N. Juffa); f in [−1/4, 1/2).
inline constexpr std::string_view kLog1pF32 = R"(
  %u = add(%x, 1) : f32
  %ub = bits(%u) : u32
  %d = sub(%ub, 1061158912) : u32
  %eb = bitwise_and(%d, 4286578688) : u32
  %xb = bits(%x) : u32
  %mb = sub(%xb, %eb) : u32
  %m = from_bits(%mb) : f32
  %sb = sub(1082130432, %eb) : u32
  %s4 = from_bits(%sb) : f32
  %t = fma(%s4, 0.25, -1) : f32
  %f = add(%m, %t) : f32
  %ei = cast(%eb) : i32
  %ef = cast(%ei) : f32
  %e = mul(%ef, 1.1920929e-07) : f32
  %s = mul(%f, %f) : f32
  %p0 = fma(%f, -4.469425e-02, 1.0430677e-01) : f32
  %p1 = fma(%p0, %f, -1.315786e-01) : f32
  %p2 = fma(%p1, %f, 1.4480796e-01) : f32
  %p3 = fma(%p2, %f, -1.6647525e-01) : f32
  %p4 = fma(%p3, %f, 1.99908e-01) : f32
  %p5 = fma(%p4, %f, -2.5000104e-01) : f32
  %p6 = fma(%p5, %f, 3.333345e-01) : f32
  %p7 = fma(%p6, %f, -0.5) : f32
  %l = fma(%p7, %s, %f) : f32
  %r = fma(%e, 0.6931472, %l) : f32
  %finite = lt(%x, inf) : bool
  %r1 = where(%finite, %r, %x) : f32
  %below = lt(%x, -1) : bool
  %r2 = where(%below, nan, %r1) : f32
  %pole = eq(%x, -1) : bool
  %z = where(%pole, -inf, %r2) : f32
  yield %z)";
inline constexpr std::string_view kLog1pF64 = R"()";

}  // namespace fusejit::ir::fragments
