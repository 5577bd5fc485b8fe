// pow.
#pragma once

#include <string_view>

namespace fusejit::ir::fragments {

// In f64: 2^(b·log2 |a|), accurate far beyond f32, so that exact powers come out exact; then C's table of signs and
// edges. log2 of the mantissa in [√½, √2) is the series in s = (m − 1)/(m + 1).
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
// 2^(b·log2 |a|) with log2 |a| in two parts (%lh of 21 bits and %ll), the way of fdlibm: |a| = 2^n·m, s = (m − p)/(m
// + p) with p = 1 or 1.5, log m/p = ⅔·s·(3 + s² + s⁴·L(s²)); wherever a product must be exact its factors have their
// low 32 bits cleared, so nothing depends on fma. Then C's table of signs and edges.
inline constexpr std::string_view kPowF64 = R"(
  %ma = abs(%a) : f64  %small = lt(%ma, 2.2250738585072014e-308) : bool  %scaled = mul(%ma, 18014398509481984) : f64
  %an = where(%small, %scaled, %ma) : f64  %k0 = where(%small, 4503599627371573, 4503599627371519) : f64
  %ab = bits(%an) : u64  %e0 = shr(%ab, 52) : u64  %e1 = bitwise_or(%e0, 4841369599423283200) : u64
  %e2 = from_bits(%e1) : f64  %e = sub(%e2, %k0) : f64  %f0 = bitwise_and(%ab, 4503599627370495) : u64
  %f1 = bitwise_or(%f0, 4607182418800017408) : u64  %m0 = from_bits(%f1) : f64
  %upper = ge(%m0, 1.7320508075688772) : bool  %middle0 = ge(%m0, 1.224744871391589) : bool
  %notupper = logical_not(%upper) : bool  %middle = logical_and(%middle0, %notupper) : bool  %mh = mul(%m0, 0.5) : f64
  %m = where(%upper, %mh, %m0) : f64  %ei = add(%e, 1) : f64  %n = where(%upper, %ei, %e) : f64
  %p = where(%middle, 1.5, 1) : f64  %dh = where(%middle, 0.5849623680114746, 0) : f64
  %dl = where(%middle, 1.3270968157207873e-07, 0) : f64  %u = sub(%m, %p) : f64  %w = add(%m, %p) : f64
  %v = div(1, %w) : f64  %ss = mul(%u, %v) : f64  %shb = bits(%ss) : u64
  %shm = bitwise_and(%shb, 18446744069414584320) : u64  %sh = from_bits(%shm) : f64  %thb = bits(%w) : u64
  %thm = bitwise_and(%thb, 18446744069414584320) : u64  %th = from_bits(%thm) : f64  %t0 = sub(%th, %p) : f64
  %tl = sub(%m, %t0) : f64  %s0 = mul(%sh, %th) : f64  %s1 = sub(%u, %s0) : f64  %s2 = mul(%sh, %tl) : f64
  %s3 = sub(%s1, %s2) : f64  %sl = mul(%v, %s3) : f64  %z = mul(%ss, %ss) : f64
  %l0 = fma(%z, 0.20697270179548244, 0.23066082355216633) : f64  %l1 = fma(%l0, %z, 0.27272812280044323) : f64
  %l2 = fma(%l1, %z, 0.33333332982463726) : f64  %l3 = fma(%l2, %z, 0.42857142857853175) : f64
  %l4 = fma(%l3, %z, 0.5999999999999946) : f64  %zz = mul(%z, %z) : f64  %r0 = mul(%zz, %l4) : f64
  %r1 = add(%sh, %ss) : f64  %r2 = mul(%sl, %r1) : f64  %r = add(%r0, %r2) : f64  %q2 = mul(%sh, %sh) : f64
  %g0 = add(%q2, 3) : f64  %g1 = add(%g0, %r) : f64  %ghb = bits(%g1) : u64
  %ghm = bitwise_and(%ghb, 18446744069414584320) : u64  %gh = from_bits(%ghm) : f64  %g2 = sub(%gh, 3) : f64
  %g3 = sub(%g2, %q2) : f64  %gl = sub(%r, %g3) : f64  %h0 = mul(%sh, %gh) : f64  %h1 = mul(%sl, %gh) : f64
  %h2 = mul(%gl, %ss) : f64  %h3 = add(%h1, %h2) : f64  %h4 = add(%h0, %h3) : f64  %phb = bits(%h4) : u64
  %phm = bitwise_and(%phb, 18446744069414584320) : u64  %ph = from_bits(%phm) : f64  %i0 = sub(%ph, %h0) : f64
  %pl = sub(%h3, %i0) : f64  %zh = mul(%ph, 0.961796760559082) : f64  %j0 = mul(%ph, -6.663310642634338e-08) : f64
  %j1 = mul(%pl, 0.9617966939259756) : f64  %j2 = add(%j0, %j1) : f64  %zl = add(%j2, %dl) : f64
  %k1 = add(%zh, %zl) : f64  %k2 = add(%k1, %dh) : f64  %k3 = add(%k2, %n) : f64  %lhb = bits(%k3) : u64
  %lhm = bitwise_and(%lhb, 18446744069414584320) : u64  %lh = from_bits(%lhm) : f64  %k4 = sub(%lh, %n) : f64
  %k5 = sub(%k4, %dh) : f64  %k6 = sub(%k5, %zh) : f64  %ll = sub(%zl, %k6) : f64
  %over = lt(1.1805916207174113e+21, %b) : bool  %b0 = where(%over, 1.1805916207174113e+21, %b) : f64
  %under = lt(%b0, -1.1805916207174113e+21) : bool  %y = where(%under, -1.1805916207174113e+21, %b0) : f64
  %yhb = bits(%y) : u64  %yhm = bitwise_and(%yhb, 18446744069414584320) : u64  %yh = from_bits(%yhm) : f64
  %yl = sub(%y, %yh) : f64  %o0 = mul(%yl, %lh) : f64  %o1 = mul(%y, %ll) : f64  %xl0 = add(%o0, %o1) : f64
  %xh0 = mul(%yh, %lh) : f64  %x0 = add(%xl0, %xh0) : f64  %up = lt(0, %b) : bool
  %big = where(%up, 3000, -3000) : f64  %tiny = neg(%big) : f64  %zero = eq(%ma, 0) : bool
  %infinite = eq(%ma, inf) : bool  %x1 = where(%zero, %tiny, %x0) : f64  %x2 = where(%infinite, %big, %x1) : f64
  %hi = lt(1100, %x2) : bool  %lo = lt(%x2, -1200) : bool  %out = logical_or(%hi, %lo) : bool
  %c0 = where(%hi, 1100, -1200) : f64  %xh = where(%out, %c0, %xh0) : f64  %xl = where(%out, 0, %xl0) : f64
  %x3 = add(%xl, %xh) : f64  %x = round(%x3) : f64  %xf = sub(%xh, %x) : f64  %a0 = add(%xl, %xf) : f64
  %ahb = bits(%a0) : u64  %ahm = bitwise_and(%ahb, 18446744069414584320) : u64  %ah = from_bits(%ahm) : f64
  %a1 = sub(%ah, %xf) : f64  %al = sub(%xl, %a1) : f64  %bu = mul(%ah, 0.6931471824645996) : f64
  %bv0 = mul(%al, 0.6931471805599453) : f64  %bv1 = mul(%ah, -1.904654299957768e-09) : f64
  %bv = add(%bv0, %bv1) : f64  %d = add(%bu, %bv) : f64  %d0 = sub(%d, %bu) : f64  %dw = sub(%bv, %d0) : f64
  %x_0 = fma(%d, 2.087521156223589e-09, 2.5109082560481853e-08) : f64
  %x_1 = fma(%x_0, %d, 2.7557403334695427e-07) : f64  %x_2 = fma(%x_1, %d, 2.75572441008123e-06) : f64
  %x_3 = fma(%x_2, %d, 2.480158717135353e-05) : f64  %x_4 = fma(%x_3, %d, 0.00019841269886211152) : f64
  %x_5 = fma(%x_4, %d, 0.0013888888888963172) : f64  %x_6 = fma(%x_5, %d, 0.008333333333321606) : f64
  %x_7 = fma(%x_6, %d, 0.041666666666666505) : f64  %x_8 = fma(%x_7, %d, 0.16666666666666677) : f64
  %x_9 = fma(%x_8, %d, 0.5) : f64  %d2 = mul(%d, %d) : f64  %c1 = mul(%d2, %x_9) : f64  %c2 = fma(%dw, %d, %dw) : f64
  %c3 = add(%c1, %c2) : f64  %c4 = add(%d, %c3) : f64  %c5 = add(%c4, 1) : f64  %v0 = mul(%x, 0.5) : f64
  %v1 = round(%v0) : f64  %v2 = sub(%x, %v1) : f64  %v3 = add(%v1, 6755399441056767) : f64
  %v4 = add(%v2, 6755399441056767) : f64  %v5 = bits(%v3) : u64  %v6 = bits(%v4) : u64  %v7 = shl(%v5, 52) : u64
  %v8 = shl(%v6, 52) : u64  %v9 = from_bits(%v7) : f64  %v10 = from_bits(%v8) : f64  %v11 = mul(%c5, %v9) : f64
  %v12 = mul(%v11, %v10) : f64  %one = eq(%ma, 1) : bool  %w0 = where(%one, 1, %v12) : f64
  %ib = floor(%b) : f64
  %whole = eq(%ib, %b) : bool
  %hb = mul(%b, 0.5) : f64
  %fb = floor(%hb) : f64
  %half = ne(%fb, %hb) : bool
  %odd = logical_and(%whole, %half) : bool
  %abits = bits(%a) : u64
  %sign = bitwise_and(%abits, 9223372036854775808) : u64
  %wb = bits(%w0) : u64
  %sb = bitwise_or(%wb, %sign) : u64
  %sw = from_bits(%sb) : f64
  %w1 = where(%odd, %sw, %w0) : f64
  %fraction = ne(%ib, %b) : bool
  %below = lt(%a, 0) : bool
  %finite = lt(-inf, %a) : bool
  %bad0 = logical_and(%fraction, %below) : bool
  %bad1 = logical_and(%bad0, %finite) : bool
  %anan = ne(%a, %a) : bool
  %bnan = ne(%b, %b) : bool
  %nan0 = logical_or(%anan, %bnan) : bool
  %bad = logical_or(%bad1, %nan0) : bool
  %w2 = where(%bad, nan, %w1) : f64
  %aone = eq(%a, 1) : bool
  %bzero = eq(%b, 0) : bool
  %trivial = logical_or(%aone, %bzero) : bool
  %r9 = where(%trivial, 1, %w2) : f64
  yield %r9)";

}  // namespace fusejit::ir::fragments
