// sin and cos in f32, argument reduction for every finite number.
#pragma once

#include <string_view>

namespace fusejit::ir::fragments {

// In f64. x/2π modulo 1 is the sum over seven pieces of 1/2π of (x·piece) − round(x·piece): every product but the
// last is exact (24 + 26 bits), so whole turns drop out however large x is; subtracted from the largest piece
// downwards, the sum keeps its leading bits when x is close to a multiple of π/2. Then the nearest quarter turn and
// two polynomials.
inline constexpr std::string_view kSinF32 = R"(
  %d = cast(%x) : f64
  %p0 = mul(%d, 0.15915494039654732) : f64
  %n0 = round(%p0) : f64
  %f0 = sub(%p0, %n0) : f64
  %p1 = mul(%d, 2.6953480003477637e-09) : f64
  %n1 = round(%p1) : f64
  %f1 = sub(%p1, %n1) : f64
  %p2 = mul(%d, 1.791623658671166e-17) : f64
  %n2 = round(%p2) : f64
  %f2 = sub(%p2, %n2) : f64
  %p3 = mul(%d, 6.913260073140178e-25) : f64
  %n3 = round(%p3) : f64
  %f3 = sub(%p3, %n3) : f64
  %p4 = mul(%d, 2.5454160182835583e-33) : f64
  %n4 = round(%p4) : f64
  %f4 = sub(%p4, %n4) : f64
  %p5 = mul(%d, 7.859136730750982e-41) : f64
  %n5 = round(%p5) : f64
  %f5 = sub(%p5, %n5) : f64
  %p6 = mul(%d, 1.5797802926460753e-48) : f64
  %n6 = round(%p6) : f64
  %f6 = sub(%p6, %n6) : f64
  %t0 = add(%f0, %f1) : f64
  %t1 = add(%t0, %f2) : f64
  %t2 = add(%t1, %f3) : f64
  %t3 = add(%t2, %f4) : f64
  %t4 = add(%t3, %f5) : f64
  %t5 = add(%t4, %f6) : f64
  %t6 = mul(%t5, 4) : f64
  %q = round(%t6) : f64
  %q4 = mul(%q, 0.25) : f64
  %g0 = sub(%f0, %q4) : f64
  %g1 = add(%g0, %f1) : f64
  %g2 = add(%g1, %f2) : f64
  %g3 = add(%g2, %f3) : f64
  %g4 = add(%g3, %f4) : f64
  %g5 = add(%g4, %f5) : f64
  %g6 = add(%g5, %f6) : f64
  %z = mul(%g6, %g6) : f64
  %s0 = fma(%z, 41.46930553793759, -76.69775800043206) : f64
  %s1 = fma(%s0, %z, 81.60520367040637) : f64
  %s2 = fma(%s1, %z, -41.341702150192965) : f64
  %s3 = fma(%s2, %z, 6.283185307150856) : f64
  %sin = mul(%g6, %s3) : f64
  %c0 = fma(%z, -26.06416894386202, 60.23844429240071) : f64
  %c1 = fma(%c0, %z, -85.45676901129401) : f64
  %c2 = fma(%c1, %z, 64.9393938590283) : f64
  %c3 = fma(%c2, %z, -19.73920880199826) : f64
  %c4 = fma(%c3, %z, 1) : f64
  %k2 = mul(%q, 0.5) : f64
  %h = floor(%k2) : f64
  %h2 = mul(%h, 0.5) : f64
  %hf = floor(%h2) : f64
  %odd = ne(%k2, %h) : bool
  %minus = ne(%h2, %hf) : bool
  %v = where(%odd, %c4, %sin) : f64
  %w = neg(%v) : f64
  %y = where(%minus, %w, %v) : f64
  %r = cast(%y) : f32
  yield %r)";
// As sin, one quarter turn further.
inline constexpr std::string_view kCosF32 = R"(
  %d = cast(%x) : f64
  %p0 = mul(%d, 0.15915494039654732) : f64
  %n0 = round(%p0) : f64
  %f0 = sub(%p0, %n0) : f64
  %p1 = mul(%d, 2.6953480003477637e-09) : f64
  %n1 = round(%p1) : f64
  %f1 = sub(%p1, %n1) : f64
  %p2 = mul(%d, 1.791623658671166e-17) : f64
  %n2 = round(%p2) : f64
  %f2 = sub(%p2, %n2) : f64
  %p3 = mul(%d, 6.913260073140178e-25) : f64
  %n3 = round(%p3) : f64
  %f3 = sub(%p3, %n3) : f64
  %p4 = mul(%d, 2.5454160182835583e-33) : f64
  %n4 = round(%p4) : f64
  %f4 = sub(%p4, %n4) : f64
  %p5 = mul(%d, 7.859136730750982e-41) : f64
  %n5 = round(%p5) : f64
  %f5 = sub(%p5, %n5) : f64
  %p6 = mul(%d, 1.5797802926460753e-48) : f64
  %n6 = round(%p6) : f64
  %f6 = sub(%p6, %n6) : f64
  %t0 = add(%f0, %f1) : f64
  %t1 = add(%t0, %f2) : f64
  %t2 = add(%t1, %f3) : f64
  %t3 = add(%t2, %f4) : f64
  %t4 = add(%t3, %f5) : f64
  %t5 = add(%t4, %f6) : f64
  %t6 = mul(%t5, 4) : f64
  %q = round(%t6) : f64
  %q4 = mul(%q, 0.25) : f64
  %g0 = sub(%f0, %q4) : f64
  %g1 = add(%g0, %f1) : f64
  %g2 = add(%g1, %f2) : f64
  %g3 = add(%g2, %f3) : f64
  %g4 = add(%g3, %f4) : f64
  %g5 = add(%g4, %f5) : f64
  %g6 = add(%g5, %f6) : f64
  %z = mul(%g6, %g6) : f64
  %s0 = fma(%z, 41.46930553793759, -76.69775800043206) : f64
  %s1 = fma(%s0, %z, 81.60520367040637) : f64
  %s2 = fma(%s1, %z, -41.341702150192965) : f64
  %s3 = fma(%s2, %z, 6.283185307150856) : f64
  %sin = mul(%g6, %s3) : f64
  %c0 = fma(%z, -26.06416894386202, 60.23844429240071) : f64
  %c1 = fma(%c0, %z, -85.45676901129401) : f64
  %c2 = fma(%c1, %z, 64.9393938590283) : f64
  %c3 = fma(%c2, %z, -19.73920880199826) : f64
  %c4 = fma(%c3, %z, 1) : f64
  %k = add(%q, 1) : f64
  %k2 = mul(%k, 0.5) : f64
  %h = floor(%k2) : f64
  %h2 = mul(%h, 0.5) : f64
  %hf = floor(%h2) : f64
  %odd = ne(%k2, %h) : bool
  %minus = ne(%h2, %hf) : bool
  %v = where(%odd, %c4, %sin) : f64
  %w = neg(%v) : f64
  %y = where(%minus, %w, %v) : f64
  %r = cast(%y) : f32
  yield %r)";
}  // namespace fusejit::ir::fragments
