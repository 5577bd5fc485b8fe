// floor_divide, remainder, fmod.
#pragma once

#include <string_view>

namespace fusejit::ir::fragments {

// In f64, where the quotient of two f32 cannot round up to an integer below 2^29; beyond, within one ulp. b = ±inf: −1 where
// a's sign differs, else 0.
inline constexpr std::string_view kFloorDivideF32 = R"(
  %da = cast(%a) : f64
  %db = cast(%b) : f64
  %q = div(%da, %db) : f64
  %f = floor(%q) : f64
  %an = lt(%a, 0) : bool
  %bn = lt(%b, 0) : bool
  %differ = logical_xor(%an, %bn) : bool
  %some = ne(%a, 0) : bool
  %tiny = eq(%q, 0) : bool
  %c0 = logical_and(%differ, %some) : bool
  %c1 = logical_and(%c0, %tiny) : bool
  %f1 = where(%c1, -1, %f) : f64
  %r = cast(%f1) : f32
  %ma = abs(%a) : f32
  %infinite = eq(%ma, inf) : bool
  %nonzero = ne(%b, 0) : bool
  %bad = logical_and(%infinite, %nonzero) : bool
  %z = where(%bad, nan, %r) : f32
  yield %z)";
inline constexpr std::string_view kFloorDivideF64 = "";
// fmod, plus b where the signs differ.
inline constexpr std::string_view kRemainderF32 = R"(
  %da = cast(%a) : f64
  %db = cast(%b) : f64
  %r10 = abs(%da) : f64
  %ub = abs(%db) : f64
  %wide = eq(%ub, inf) : bool
  %w = where(%wide, 1.3407807929942597e+154, %ub) : f64
  %b9 = mul(%w, 7.237005577332262e+75) : f64
  %x9 = div(%r10, %b9) : f64
  %q9 = trunc(%x9) : f64
  %m9 = mul(%q9, %b9) : f64
  %r9 = sub(%r10, %m9) : f64
  %b8 = mul(%w, 2.695994666715064e+67) : f64
  %x8 = div(%r9, %b8) : f64
  %q8 = trunc(%x8) : f64
  %m8 = mul(%q8, %b8) : f64
  %r8 = sub(%r9, %m8) : f64
  %b7 = mul(%w, 1.004336277661869e+59) : f64
  %x7 = div(%r8, %b7) : f64
  %q7 = trunc(%x7) : f64
  %m7 = mul(%q7, %b7) : f64
  %r7 = sub(%r8, %m7) : f64
  %b6 = mul(%w, 3.7414441915671115e+50) : f64
  %x6 = div(%r7, %b6) : f64
  %q6 = trunc(%x6) : f64
  %m6 = mul(%q6, %b6) : f64
  %r6 = sub(%r7, %m6) : f64
  %b5 = mul(%w, 1.393796574908164e+42) : f64
  %x5 = div(%r6, %b5) : f64
  %q5 = trunc(%x5) : f64
  %m5 = mul(%q5, %b5) : f64
  %r5 = sub(%r6, %m5) : f64
  %b4 = mul(%w, 5.192296858534828e+33) : f64
  %x4 = div(%r5, %b4) : f64
  %q4 = trunc(%x4) : f64
  %m4 = mul(%q4, %b4) : f64
  %r4 = sub(%r5, %m4) : f64
  %b3 = mul(%w, 1.9342813113834067e+25) : f64
  %x3 = div(%r4, %b3) : f64
  %q3 = trunc(%x3) : f64
  %m3 = mul(%q3, %b3) : f64
  %r3 = sub(%r4, %m3) : f64
  %b2 = mul(%w, 7.205759403792794e+16) : f64
  %x2 = div(%r3, %b2) : f64
  %q2 = trunc(%x2) : f64
  %m2 = mul(%q2, %b2) : f64
  %r2 = sub(%r3, %m2) : f64
  %b1 = mul(%w, 268435456.0) : f64
  %x1 = div(%r2, %b1) : f64
  %q1 = trunc(%x1) : f64
  %m1 = mul(%q1, %b1) : f64
  %r1 = sub(%r2, %m1) : f64
  %x0 = div(%r1, %w) : f64
  %q0 = trunc(%x0) : f64
  %m0 = mul(%q0, %w) : f64
  %r0 = sub(%r1, %m0) : f64
  %rf = cast(%r0) : f32
  %rn = neg(%rf) : f32
  %an = lt(%a, 0) : bool
  %mod = where(%an, %rn, %rf) : f32
  %mn = lt(%mod, 0) : bool
  %bn = lt(%b, 0) : bool
  %differ = logical_xor(%mn, %bn) : bool
  %some = ne(%mod, 0) : bool
  %fix = logical_and(%differ, %some) : bool
  %sum = add(%mod, %b) : f32
  %r = where(%fix, %sum, %mod) : f32
  yield %r)";
inline constexpr std::string_view kRemainderF64 = "";
// In f64, long division: ten steps of at most 28 bits of the quotient. r and b·2^(28k) are multiples of the last place of b,
// so every quotient, product and difference is exact, and so is the result.
inline constexpr std::string_view kFmodF32 = R"(
  %da = cast(%a) : f64
  %db = cast(%b) : f64
  %r10 = abs(%da) : f64
  %ub = abs(%db) : f64
  %wide = eq(%ub, inf) : bool
  %w = where(%wide, 1.3407807929942597e+154, %ub) : f64
  %b9 = mul(%w, 7.237005577332262e+75) : f64
  %x9 = div(%r10, %b9) : f64
  %q9 = trunc(%x9) : f64
  %m9 = mul(%q9, %b9) : f64
  %r9 = sub(%r10, %m9) : f64
  %b8 = mul(%w, 2.695994666715064e+67) : f64
  %x8 = div(%r9, %b8) : f64
  %q8 = trunc(%x8) : f64
  %m8 = mul(%q8, %b8) : f64
  %r8 = sub(%r9, %m8) : f64
  %b7 = mul(%w, 1.004336277661869e+59) : f64
  %x7 = div(%r8, %b7) : f64
  %q7 = trunc(%x7) : f64
  %m7 = mul(%q7, %b7) : f64
  %r7 = sub(%r8, %m7) : f64
  %b6 = mul(%w, 3.7414441915671115e+50) : f64
  %x6 = div(%r7, %b6) : f64
  %q6 = trunc(%x6) : f64
  %m6 = mul(%q6, %b6) : f64
  %r6 = sub(%r7, %m6) : f64
  %b5 = mul(%w, 1.393796574908164e+42) : f64
  %x5 = div(%r6, %b5) : f64
  %q5 = trunc(%x5) : f64
  %m5 = mul(%q5, %b5) : f64
  %r5 = sub(%r6, %m5) : f64
  %b4 = mul(%w, 5.192296858534828e+33) : f64
  %x4 = div(%r5, %b4) : f64
  %q4 = trunc(%x4) : f64
  %m4 = mul(%q4, %b4) : f64
  %r4 = sub(%r5, %m4) : f64
  %b3 = mul(%w, 1.9342813113834067e+25) : f64
  %x3 = div(%r4, %b3) : f64
  %q3 = trunc(%x3) : f64
  %m3 = mul(%q3, %b3) : f64
  %r3 = sub(%r4, %m3) : f64
  %b2 = mul(%w, 7.205759403792794e+16) : f64
  %x2 = div(%r3, %b2) : f64
  %q2 = trunc(%x2) : f64
  %m2 = mul(%q2, %b2) : f64
  %r2 = sub(%r3, %m2) : f64
  %b1 = mul(%w, 268435456.0) : f64
  %x1 = div(%r2, %b1) : f64
  %q1 = trunc(%x1) : f64
  %m1 = mul(%q1, %b1) : f64
  %r1 = sub(%r2, %m1) : f64
  %x0 = div(%r1, %w) : f64
  %q0 = trunc(%x0) : f64
  %m0 = mul(%q0, %w) : f64
  %r0 = sub(%r1, %m0) : f64
  %rf = cast(%r0) : f32
  %rn = neg(%rf) : f32
  %an = lt(%a, 0) : bool
  %mod = where(%an, %rn, %rf) : f32
  yield %mod)";
inline constexpr std::string_view kFmodF64 = "";

}  // namespace fusejit::ir::fragments
