// erf and erfc.
#pragma once

#include <string_view>

namespace fusejit::ir::fragments {

// 1 − e^(−|x|·g(|x|)) as in expm1, g(a) = −log(erfc a)/a being close to a parabola: relative accuracy from denormals
// to 3.93, where erf rounds to 1, with one polynomial and no division. The sign of x is put back.
inline constexpr std::string_view kErfF32 = R"(
  %a = abs(%x) : f32
  %big = lt(3.93, %a) : bool
  %y = where(%big, 3.93, %a) : f32
  %g0 = fma(%y, -4.1672433e-06, 6.824629e-05) : f32
  %g1 = fma(%g0, %y, -4.4502036e-04) : f32
  %g2 = fma(%g1, %y, 1.3103385e-03) : f32
  %g3 = fma(%g2, %y, 1.9815059e-04) : f32
  %g4 = fma(%g3, %y, -1.9339543e-02) : f32
  %g5 = fma(%g4, %y, 1.02823146e-01) : f32
  %g6 = fma(%g5, %y, 6.366154e-01) : f32
  %g7 = fma(%g6, %y, 1.1283792e+00) : f32
  %v = mul(%y, %g7) : f32
  %u = neg(%v) : f32
  %t = fma(%u, 1.442695, 12583295) : f32
  %j = sub(%t, 12583295) : f32
  %r0 = fma(%j, -0.69314575, %u) : f32
  %r = fma(%j, -1.4286068e-06, %r0) : f32
  %e0 = fma(%r, 1.3836082e-03, 8.367125e-03) : f32
  %e1 = fma(%e0, %r, 4.1667752e-02) : f32
  %e2 = fma(%e1, %r, 1.6666539e-01) : f32
  %e3 = fma(%e2, %r, 4.9999997e-01) : f32
  %r2 = mul(%r, %r) : f32
  %p = fma(%e3, %r2, %r) : f32
  %tb = bits(%t) : u32
  %se = shl(%tb, 23) : u32
  %s = from_bits(%se) : f32
  %h = add(%s, 1) : f32
  %m = fma(%p, %s, %h) : f32
  %xb = bits(%x) : u32
  %sign = bitwise_and(%xb, 2147483648) : u32
  %mb = bits(%m) : u32
  %zb = bitwise_or(%mb, %sign) : u32
  %z = from_bits(%zb) : f32
  yield %z)";
inline constexpr std::string_view kErfF64 = "";
// In f64: t·e^(−a² + P(t)) with a = |x|, t = 1/(1 + a/2) (Numerical Recipes' form, a new fit); 2 less that for x < 0.
inline constexpr std::string_view kErfcF32 = R"(
  %d = cast(%x) : f64
  %a = abs(%d) : f64
  %big = lt(11, %a) : bool
  %y = where(%big, 11, %a) : f64
  %w = fma(%y, 0.5, 1) : f64
  %t = div(1, %w) : f64
  %p0 = fma(%t, 0.18334676958162854, -1.3546864690675944) : f64
  %p1 = fma(%p0, %t, 4.334432677819478) : f64
  %p2 = fma(%p1, %t, -7.758464075941381) : f64
  %p3 = fma(%p2, %t, 8.382284251928176) : f64
  %p4 = fma(%p3, %t, -5.615882367357895) : f64
  %p5 = fma(%p4, %t, 2.5777236466239306) : f64
  %p6 = fma(%p5, %t, -1.0344972456174895) : f64
  %p7 = fma(%p6, %t, 0.12344013356246882) : f64
  %p8 = fma(%p7, %t, 0.04944435016189704) : f64
  %p9 = fma(%p8, %t, 0.37858725075236793) : f64
  %p10 = fma(%p9, %t, 0.999777050119648) : f64
  %p11 = fma(%p10, %t, -1.265505972409404) : f64
  %y2 = mul(%y, %y) : f64
  %u = sub(%p11, %y2) : f64
  %n0 = fma(%u, 1.4426950408889634, 6755399441056767) : f64
  %n = sub(%n0, 6755399441056767) : f64
  %r = fma(%n, -0.6931471805599453, %u) : f64
  %e0 = fma(%r, 0.0001976754176175071, 0.0013946011954784976) : f64
  %e1 = fma(%e0, %r, 0.008333569801459913) : f64
  %e2 = fma(%e1, %r, 0.04166627097138566) : f64
  %e3 = fma(%e2, %r, 0.1666666515505765) : f64
  %e4 = fma(%e3, %r, 0.5000000077611167) : f64
  %e5 = fma(%e4, %r, 1.000000000210201) : f64
  %e6 = fma(%e5, %r, 1) : f64
  %nb = bits(%n0) : u64
  %se = shl(%nb, 52) : u64
  %s = from_bits(%se) : f64
  %ts = mul(%t, %s) : f64
  %v = mul(%e6, %ts) : f64
  %v2 = sub(2, %v) : f64
  %negative = lt(%d, 0) : bool
  %z = where(%negative, %v2, %v) : f64
  %f = cast(%z) : f32
  yield %f)";
inline constexpr std::string_view kErfcF64 = "";

}  // namespace fusejit::ir::fragments
