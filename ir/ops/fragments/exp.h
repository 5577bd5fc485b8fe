// exp, exp2, expm1 and what is made of them: sigmoid, tanh. Argument reduction by Cody and Waite: n = round(x·log2
// e) by adding a number so large that its last place is 1; the low bits of the sum then hold n, from which 2^n is
// made by a shift.
#pragma once

#include <string_view>

namespace fusejit::ir::fragments {

// e^x = (q·2^m)² with m = round(x/(2 ln 2)), r = x − 2m·ln 2, q = e^(r/2): 2^m is normal for every result, so that
// results run into denormals and infinity with one rounding and without a second scale. Clamped where e^x is inf and
// 0.
inline constexpr std::string_view kExpF32 = R"(
  %over = lt(89, %x) : bool
  %low = where(%over, 89, %x) : f32
  %under = lt(%low, -105) : bool
  %y = where(%under, -105, %low) : f32
  %t = fma(%y, 0.72134752, 12583039) : f32
  %m = sub(%t, 12583039) : f32
  %r0 = fma(%m, -1.3862915, %y) : f32
  %r = fma(%m, -2.8572136e-06, %r0) : f32
  %p0 = fma(%r, 2.1622518e-05, 2.615372e-04) : f32
  %p1 = fma(%p0, %r, 2.6042566e-03) : f32
  %p2 = fma(%p1, %r, 2.0833146e-02) : f32
  %p3 = fma(%p2, %r, 1.24999985e-01) : f32
  %p4 = fma(%p3, %r, 0.5) : f32
  %p5 = fma(%p4, %r, 1) : f32
  %b = bits(%t) : u32
  %e = shl(%b, 23) : u32
  %s = from_bits(%e) : f32
  %q = mul(%p5, %s) : f32
  %z = mul(%q, %q) : f32
  yield %z)";
inline constexpr std::string_view kExpF64 = R"(
  %over = lt(710, %x) : bool
  %low = where(%over, 710, %x) : f64
  %under = lt(%low, -746) : bool
  %y = where(%under, -746, %low) : f64
  %t = fma(%y, 0.7213475204444817, 6755399441056767) : f64
  %m = sub(%t, 6755399441056767) : f64
  %r0 = fma(%m, -1.3862943611184164, %y) : f64
  %r = fma(%m, -1.4742005130335598e-12, %r0) : f64
  %p0 = fma(%r, 1.2207094153112468e-11, 2.698266420061036e-10) : f64
  %p1 = fma(%p0, %r, 5.3823410545126724e-09) : f64
  %p2 = fma(%p1, %r, 9.68808324266395e-08) : f64
  %p3 = fma(%p2, %r, 1.550099180212164e-06) : f64
  %p4 = fma(%p3, %r, 2.1701388974415067e-05) : f64
  %p5 = fma(%p4, %r, 0.00026041666667170116) : f64
  %p6 = fma(%p5, %r, 0.002604166666658137) : f64
  %p7 = fma(%p6, %r, 0.020833333333333016) : f64
  %p8 = fma(%p7, %r, 0.12500000000000028) : f64
  %p9 = fma(%p8, %r, 0.5) : f64
  %p10 = fma(%p9, %r, 1) : f64
  %b = bits(%t) : u64
  %e = shl(%b, 52) : u64
  %s = from_bits(%e) : f64
  %q = mul(%p10, %s) : f64
  %z = mul(%q, %q) : f64
  yield %z)";

// As exp with r = x − 2m, q = 2^(r/2).
inline constexpr std::string_view kExp2F32 = R"(
  %over = lt(129, %x) : bool
  %low = where(%over, 129, %x) : f32
  %under = lt(%low, -151) : bool
  %y = where(%under, -151, %low) : f32
  %t = fma(%y, 0.5, 12583039) : f32
  %m = sub(%t, 12583039) : f32
  %r = fma(%m, -2, %y) : f32
  %p0 = fma(%r, 2.0831915e-06, 4.1837273e-05) : f32
  %p1 = fma(%p0, %r, 6.015903e-04) : f32
  %p2 = fma(%p1, %r, 6.937958e-03) : f32
  %p3 = fma(%p2, %r, 6.0056485e-02) : f32
  %p4 = fma(%p3, %r, 3.465736e-01) : f32
  %p5 = fma(%p4, %r, 1) : f32
  %b = bits(%t) : u32
  %e = shl(%b, 23) : u32
  %s = from_bits(%e) : f32
  %q = mul(%p5, %s) : f32
  %z = mul(%q, %q) : f32
  yield %z)";
inline constexpr std::string_view kExp2F64 = R"(
  %over = lt(1025, %x) : bool
  %low = where(%over, 1025, %x) : f64
  %under = lt(%low, -1076) : bool
  %y = where(%under, -1076, %low) : f64
  %t = fma(%y, 0.5, 6755399441056767) : f64
  %m = sub(%t, 6755399441056767) : f64
  %r = fma(%m, -2, %y) : f64
  %p0 = fma(%r, 6.2562039727509704e-15, 2.1760608457118247e-13) : f64
  %p1 = fma(%p0, %r, 6.88962353792742e-12) : f64
  %p2 = fma(%p1, %r, 1.9879007673910445e-10) : f64
  %p3 = fma(%p2, %r, 5.162299451093006e-09) : f64
  %p4 = fma(%p3, %r, 1.1916198323708383e-07) : f64
  %p5 = fma(%p4, %r, 2.4068016240063933e-06) : f64
  %p6 = fma(%p5, %r, 4.166736920747708e-05) : f64
  %p7 = fma(%p6, %r, 0.0006011330692267706) : f64
  %p8 = fma(%p7, %r, 0.006938013583102711) : f64
  %p9 = fma(%p8, %r, 0.06005662673977518) : f64
  %p10 = fma(%p9, %r, 0.34657359027997264) : f64
  %p11 = fma(%p10, %r, 1) : f64
  %b = bits(%t) : u64
  %e = shl(%b, 52) : u64
  %s = from_bits(%e) : f64
  %q = mul(%p11, %s) : f64
  %z = mul(%q, %q) : f64
  yield %z)";

// e^x − 1 = 2(s·p + (s − ½)) with s = 2^(j−1), j = round(x·log2 e), p = e^(x − j·ln 2) − 1; s is finite for every x.
inline constexpr std::string_view kExpm1F32 = R"(
  %over = lt(89, %x) : bool
  %low = where(%over, 89, %x) : f32
  %under = lt(%low, -20) : bool
  %y = where(%under, -20, %low) : f32
  %t = fma(%y, 1.442695, 12583038) : f32
  %j = sub(%t, 12583038) : f32
  %r0 = fma(%j, -0.69314575, %y) : f32
  %r = fma(%j, -1.4286068e-06, %r0) : f32
  %p0 = fma(%r, 1.3836082e-03, 8.367125e-03) : f32
  %p1 = fma(%p0, %r, 4.1667752e-02) : f32
  %p2 = fma(%p1, %r, 1.6666539e-01) : f32
  %p3 = fma(%p2, %r, 4.9999997e-01) : f32
  %r2 = mul(%r, %r) : f32
  %p = fma(%p3, %r2, %r) : f32
  %b = bits(%t) : u32
  %e = shl(%b, 23) : u32
  %s = from_bits(%e) : f32
  %h = sub(%s, 0.5) : f32
  %w = fma(%s, %p, %h) : f32
  %z = add(%w, %w) : f32
  yield %z)";
inline constexpr std::string_view kExpm1F64 = R"(
  %over = lt(710, %x) : bool
  %low = where(%over, 710, %x) : f64
  %under = lt(%low, -40) : bool
  %y = where(%under, -40, %low) : f64
  %t = fma(%y, 1.4426950408889634, 6755399441056766) : f64
  %j = sub(%t, 6755399441056766) : f64
  %r0 = fma(%j, -0.6931471805592082, %y) : f64
  %r = fma(%j, -7.371002565167799e-13, %r0) : f64
  %p0 = fma(%r, 2.087521156223589e-09, 2.5109082560481853e-08) : f64
  %p1 = fma(%p0, %r, 2.7557403334695427e-07) : f64
  %p2 = fma(%p1, %r, 2.75572441008123e-06) : f64
  %p3 = fma(%p2, %r, 2.480158717135353e-05) : f64
  %p4 = fma(%p3, %r, 0.00019841269886211152) : f64
  %p5 = fma(%p4, %r, 0.0013888888888963172) : f64
  %p6 = fma(%p5, %r, 0.008333333333321606) : f64
  %p7 = fma(%p6, %r, 0.041666666666666505) : f64
  %p8 = fma(%p7, %r, 0.16666666666666677) : f64
  %p9 = fma(%p8, %r, 0.5) : f64
  %r2 = mul(%r, %r) : f64
  %p = fma(%p9, %r2, %r) : f64
  %b = bits(%t) : u64
  %e = shl(%b, 52) : u64
  %s = from_bits(%e) : f64
  %h = sub(%s, 0.5) : f64
  %w = fma(%s, %p, %h) : f64
  %z = add(%w, %w) : f64
  yield %z)";

// With e = e^−|x|: 1/(1 + e), or e/(1 + e) for negative x: no overflow, denormals kept. Here e = q·2^m·2^m with
// |r| ≤ ln 2 and no square, for the error of a square would be doubled.
inline constexpr std::string_view kSigmoidF32 = R"(
  %a = abs(%x) : f32
  %na = neg(%a) : f32
  %under = lt(%na, -105) : bool
  %y = where(%under, -105, %na) : f32
  %t = fma(%y, 0.72134752, 12583039) : f32
  %m = sub(%t, 12583039) : f32
  %r0 = fma(%m, -1.3862915, %y) : f32
  %r = fma(%m, -2.8572136e-06, %r0) : f32
  %p0 = fma(%r, 1.9646321e-04, 1.4106412e-03) : f32
  %p1 = fma(%p0, %r, 8.33591e-03) : f32
  %p2 = fma(%p1, %r, 4.1661166e-02) : f32
  %p3 = fma(%p2, %r, 1.6666616e-01) : f32
  %p4 = fma(%p3, %r, 5.0000036e-01) : f32
  %r2 = mul(%r, %r) : f32
  %w = fma(%p4, %r2, %r) : f32
  %q = add(%w, 1) : f32
  %b = bits(%t) : u32
  %es = shl(%b, 23) : u32
  %s = from_bits(%es) : f32
  %f = mul(%q, %s) : f32
  %e = mul(%f, %s) : f32
  %d = add(%e, 1) : f32
  %negative = lt(%x, 0) : bool
  %n = where(%negative, %e, 1) : f32
  %z = div(%n, %d) : f32
  yield %z)";
// With e = e^−|x|: 1/(1 + e), or e/(1 + e) for negative x; beyond 400, e^−400·e^(400 − |x|), so that denormals come
// right.
inline constexpr std::string_view kSigmoidF64 = R"(
  %a = abs(%x) : f64
  %big = lt(1000, %a) : bool
  %a1 = where(%big, 1000, %a) : f64
  %far = lt(400, %a1) : bool
  %a2 = sub(%a1, 400) : f64
  %a3 = where(%far, %a2, %a1) : f64
  %f = where(%far, 1.9151695967140057e-174, 1) : f64
  %y = neg(%a3) : f64
  %t = fma(%y, 1.4426950408889634, 6755399441056767) : f64
  %j = sub(%t, 6755399441056767) : f64
  %r0 = fma(%j, -0.6931471805592082, %y) : f64
  %r = fma(%j, -7.371002565167799e-13, %r0) : f64
  %p0 = fma(%r, 2.087521156223589e-09, 2.5109082560481853e-08) : f64
  %p1 = fma(%p0, %r, 2.7557403334695427e-07) : f64
  %p2 = fma(%p1, %r, 2.75572441008123e-06) : f64
  %p3 = fma(%p2, %r, 2.480158717135353e-05) : f64
  %p4 = fma(%p3, %r, 0.00019841269886211152) : f64
  %p5 = fma(%p4, %r, 0.0013888888888963172) : f64
  %p6 = fma(%p5, %r, 0.008333333333321606) : f64
  %p7 = fma(%p6, %r, 0.041666666666666505) : f64
  %p8 = fma(%p7, %r, 0.16666666666666677) : f64
  %p9 = fma(%p8, %r, 0.5) : f64
  %r2 = mul(%r, %r) : f64
  %p = fma(%p9, %r2, %r) : f64
  %b = bits(%t) : u64
  %e = shl(%b, 52) : u64
  %s = from_bits(%e) : f64
  %pp = add(%p, 1) : f64
  %ea = mul(%pp, %s) : f64
  %ex = mul(%ea, %f) : f64
  %d0 = add(%ex, 1) : f64
  %negative = lt(%x, 0) : bool
  %n = where(%negative, %ex, 1) : f64
  %z = div(%n, %d0) : f64
  yield %z)";

// With n = 1 − e^(−2|x|), as in expm1 but for s = −2^j (256 in the number added sets the sign): n/(2 − n), the sign
// of x put back. 1 from 9.02 on.
inline constexpr std::string_view kTanhF32 = R"(
  %a = abs(%x) : f32
  %big = lt(9.02, %a) : bool
  %y = where(%big, 9.02, %a) : f32
  %u = mul(%y, -2) : f32
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
  %n = fma(%p, %s, %h) : f32
  %d = sub(2, %n) : f32
  %m = div(%n, %d) : f32
  %xb = bits(%x) : u32
  %sign = bitwise_and(%xb, 2147483648) : u32
  %mb = bits(%m) : u32
  %zb = bitwise_or(%mb, %sign) : u32
  %z = from_bits(%zb) : f32
  yield %z)";
inline constexpr std::string_view kTanhF64 = R"(
  %a = abs(%x) : f64
  %big = lt(20, %a) : bool
  %y = where(%big, 20, %a) : f64
  %u = mul(%y, -2) : f64
  %t = fma(%u, 1.4426950408889634, 6755399441058815) : f64
  %j = sub(%t, 6755399441058815) : f64
  %r0 = fma(%j, -0.6931471805592082, %u) : f64
  %r = fma(%j, -7.371002565167799e-13, %r0) : f64
  %p0 = fma(%r, 2.087521156223589e-09, 2.5109082560481853e-08) : f64
  %p1 = fma(%p0, %r, 2.7557403334695427e-07) : f64
  %p2 = fma(%p1, %r, 2.75572441008123e-06) : f64
  %p3 = fma(%p2, %r, 2.480158717135353e-05) : f64
  %p4 = fma(%p3, %r, 0.00019841269886211152) : f64
  %p5 = fma(%p4, %r, 0.0013888888888963172) : f64
  %p6 = fma(%p5, %r, 0.008333333333321606) : f64
  %p7 = fma(%p6, %r, 0.041666666666666505) : f64
  %p8 = fma(%p7, %r, 0.16666666666666677) : f64
  %p9 = fma(%p8, %r, 0.5) : f64
  %r2 = mul(%r, %r) : f64
  %p = fma(%p9, %r2, %r) : f64
  %b = bits(%t) : u64
  %e = shl(%b, 52) : u64
  %s = from_bits(%e) : f64
  %h = add(%s, 1) : f64
  %n = fma(%p, %s, %h) : f64
  %d = sub(2, %n) : f64
  %m = div(%n, %d) : f64
  %xb = bits(%x) : u64
  %sign = bitwise_and(%xb, 9223372036854775808) : u64
  %mb = bits(%m) : u64
  %zb = bitwise_or(%mb, %sign) : u64
  %z = from_bits(%zb) : f64
  yield %z)";

}  // namespace fusejit::ir::fragments
