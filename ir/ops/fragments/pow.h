// pow.
#pragma once

#include <string_view>

namespace fusejit::ir::fragments {

// In f64: 2^(b·log2 |a|), accurate far beyond f32, so that exact powers come out exact; then C's table of signs and edges.
// log2 of the mantissa in [√½, √2) is the series in s = (m − 1)/(m + 1).
inline constexpr std::string_view kPowF32 = R"(
  %da = cast(%a) : f64
  %db = cast(%b) : f64
  %ma = abs(%da) : f64
  %ab = bits(%ma) : u64
  %d = sub(%ab, 4604544271217802189) : u64
  %eb = bitwise_and(%d, 18442240474082181120) : u64
  %mb = sub(%ab, %eb) : u64
  %m = from_bits(%mb) : f64
  %k0 = add(%d, 4607182418800017408) : u64
  %k1 = shr(%k0, 52) : u64
  %k2 = bitwise_or(%k1, 4841369599423283200) : u64
  %k3 = from_bits(%k2) : f64
  %k = sub(%k3, 4503599627371519) : f64
  %m0 = sub(%m, 1) : f64
  %m1 = add(%m, 1) : f64
  %s = div(%m0, %m1) : f64
  %z = mul(%s, %s) : f64
  %l0 = fma(%z, 0.24289146673143558, 0.26144683932046064) : f64
  %l1 = fma(%l0, %z, 0.3206162835507306) : f64
  %l2 = fma(%l1, %z, 0.41219840407422065) : f64
  %l3 = fma(%l2, %z, 0.5770780172272296) : f64
  %l4 = fma(%l3, %z, 0.9617966939244119) : f64
  %l5 = fma(%l4, %z, 2.885390081777927) : f64
  %log = fma(%l5, %s, %k) : f64
  %zero = eq(%ma, 0) : bool
  %g1 = where(%zero, -inf, %log) : f64
  %infinite = eq(%ma, inf) : bool
  %nan = ne(%ma, %ma) : bool
  %g2 = where(%infinite, inf, %g1) : f64
  %g3 = where(%nan, nan, %g2) : f64
  %p = mul(%g3, %db) : f64
  %one = eq(%ma, 1) : bool
  %p1 = where(%one, 0, %p) : f64
  %over = lt(300, %p1) : bool
  %p2 = where(%over, 300, %p1) : f64
  %under = lt(%p2, -300) : bool
  %p3 = where(%under, -300, %p2) : f64
  %n0 = add(%p3, 6755399441056767) : f64
  %n = sub(%n0, 6755399441056767) : f64
  %f = sub(%p3, %n) : f64
  %e0 = fma(%f, 1.3371383150961362e-06, 1.531195342336764e-05) : f64
  %e1 = fma(%e0, %f, 0.00015403323587430496) : f64
  %e2 = fma(%e1, %f, 0.0013333447326180805) : f64
  %e3 = fma(%e2, %f, 0.009618128457378429) : f64
  %e4 = fma(%e3, %f, 0.05550410938116346) : f64
  %e5 = fma(%e4, %f, 0.24022650704690618) : f64
  %e6 = fma(%e5, %f, 0.6931471805481924) : f64
  %e7 = fma(%e6, %f, 1) : f64
  %nb = bits(%n0) : u64
  %se = shl(%nb, 52) : u64
  %scale = from_bits(%se) : f64
  %v = mul(%e7, %scale) : f64
  %y = cast(%v) : f32
  %ib = floor(%b) : f32
  %whole = eq(%ib, %b) : bool
  %hb = mul(%b, 0.5) : f32
  %fb = floor(%hb) : f32
  %half = ne(%fb, %hb) : bool
  %odd = logical_and(%whole, %half) : bool
  %abits = bits(%a) : u32
  %sign = bitwise_and(%abits, 2147483648) : u32
  %yb = bits(%y) : u32
  %sb = bitwise_or(%yb, %sign) : u32
  %sy = from_bits(%sb) : f32
  %y1 = where(%odd, %sy, %y) : f32
  %fraction = ne(%ib, %b) : bool
  %below = lt(%a, 0) : bool
  %finite = lt(-inf, %a) : bool
  %bad0 = logical_and(%fraction, %below) : bool
  %bad = logical_and(%bad0, %finite) : bool
  %y2 = where(%bad, nan, %y1) : f32
  %bnan = ne(%b, %b) : bool
  %y3 = where(%bnan, nan, %y2) : f32
  %a1 = eq(%a, 1) : bool
  %b0 = eq(%b, 0) : bool
  %trivial = logical_or(%a1, %b0) : bool
  %r = where(%trivial, 1, %y3) : f32
  yield %r)";
inline constexpr std::string_view kPowF64 = "";

}  // namespace fusejit::ir::fragments
