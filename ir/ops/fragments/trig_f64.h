// sin and cos in f64: argument reduction for every finite number without tables (they would be loads). 1/2π is kept
// as 49 words of 24 bits, word j times 2^(24j). Six selects by the size of |x| scale x by 2^-24k into [0, 2^78) and
// shift the words by k, so that nine of them meet x; what is left out is a multiple of whole turns above and below
// 2^-139 below. Products of the halves of x (26 and 27 bits) with words are exact, whole turns are dropped product
// by product, and the sum from the top down is kept with its rounding errors, so that it keeps its bits when x is
// within 2^-61 of a multiple of π/2.
#pragma once

#include <string_view>

#include "ir/ops/fragments/join.h"

namespace fusejit::ir::fragments {

inline constexpr std::string_view kTurnsF64 = R"(
  %a = abs(%x) : f64  %b32 = ge(%a, 2.7967679607885704e+247) : bool  %y32 = mul(%a, 6.441148769597133e-232) : f64
  %x32 = where(%b32, %y32, %a) : f64  %b16 = ge(%x32, 7.098034416949286e+131) : bool
  %y16 = mul(%x32, 2.5379418373156492e-116) : f64  %x16 = where(%b16, %y16, %x32) : f64
  %b8 = ge(%x16, 1.130782121458166e+74) : bool  %y8 = mul(%x16, 1.5930919111324523e-58) : f64
  %x8 = where(%b8, %y8, %x16) : f64  %b4 = ge(%x8, 1.42724769270596e+45) : bool
  %y4 = mul(%x8, 1.262177448353619e-29) : f64  %x4 = where(%b4, %y4, %x8) : f64
  %b2 = ge(%x4, 5.070602400912918e+30) : bool  %y2 = mul(%x4, 3.552713678800501e-15) : f64
  %x2 = where(%b2, %y2, %x4) : f64  %b1 = ge(%x2, 3.022314549036573e+23) : bool
  %y1 = mul(%x2, 5.960464477539063e-08) : f64  %x1 = where(%b1, %y1, %x2) : f64
  %w32_0 = where(%b32, 0.23357798159122467, 0.15915493667125702) : f64
  %w32_1 = where(%b32, 0.1360856592655182, 0.10772043466567993) : f64
  %w32_2 = where(%b32, 0.1065651923418045, 0.020667970180511475) : f64
  %w32_3 = where(%b32, 0.053218111395835876, 0.03842093050479889) : f64
  %w32_4 = where(%b32, 0.03886045515537262, 0.23945946991443634) : f64
  %w32_5 = where(%b32, 0.17901334166526794, 0.18833687901496887) : f64
  %w32_6 = where(%b32, 0.06191489100456238, 0.14609235525131226) : f64
  %w32_7 = where(%b32, 0.09366674721240997, 0.0659799724817276) : f64
  %w32_8 = where(%b32, 0.11440935730934143, 0.24835734069347382) : f64
  %w32_9 = where(%b32, 0.19523580372333527, 0.167841836810112) : f64
  %w32_10 = where(%b32, 0.2358216792345047, 0.1927555650472641) : f64
  %w32_11 = where(%b32, 0.007057055830955505, 0.03557673096656799) : f64
  %w32_12 = where(%b32, 0.13508060574531555, 0.06474998593330383) : f64
  %w32_13 = where(%b32, 0.22892753779888153, 0.2187739759683609) : f64
  %w32_14 = where(%b32, 0.09344910085201263, 0.045814648270606995) : f64
  %w32_15 = where(%b32, 0.13805019855499268, 0.20465892553329468) : f64
  %w32_16 = where(%b32, 0.08399653434753418, 0.24816100299358368) : f64  %w16_0 = where(%b16, %w32_16, %w32_0) : f64
  %w16_1 = where(%b16, 0.028019562363624573, %w32_1) : f64  %w16_2 = where(%b16, 0.16332590579986572, %w32_2) : f64
  %w16_3 = where(%b16, 0.12715895473957062, %w32_3) : f64  %w16_4 = where(%b16, 0.04563623666763306, %w32_4) : f64
  %w16_5 = where(%b16, 0.12979739904403687, %w32_5) : f64  %w16_6 = where(%b16, 0.10952264070510864, %w32_6) : f64
  %w16_7 = where(%b16, 0.09325505793094635, %w32_7) : f64  %w16_8 = where(%b16, 0.05622038245201111, %w32_8) : f64
  %w16_9 = where(%b16, 0.056165024638175964, %w32_9) : f64  %w16_10 = where(%b16, 0.05659717321395874, %w32_10) : f64
  %w16_11 = where(%b16, 0.12927071750164032, %w32_11) : f64  %w16_12 = where(%b16, 0.18552076816558838, %w32_12) : f64
  %w16_13 = where(%b16, 0.05773913860321045, %w32_13) : f64  %w16_14 = where(%b16, 0.1484369933605194, %w32_14) : f64
  %w16_15 = where(%b16, 0.005462870001792908, %w32_15) : f64
  %w16_16 = where(%b16, 0.23357798159122467, %w32_16) : f64
  %w16_17 = where(%b16, 0.1360856592655182, 0.028019562363624573) : f64
  %w16_18 = where(%b16, 0.1065651923418045, 0.16332590579986572) : f64
  %w16_19 = where(%b16, 0.053218111395835876, 0.12715895473957062) : f64
  %w16_20 = where(%b16, 0.03886045515537262, 0.04563623666763306) : f64
  %w16_21 = where(%b16, 0.17901334166526794, 0.12979739904403687) : f64
  %w16_22 = where(%b16, 0.06191489100456238, 0.10952264070510864) : f64
  %w16_23 = where(%b16, 0.09366674721240997, 0.09325505793094635) : f64  %w8_0 = where(%b8, %w16_8, %w16_0) : f64
  %w8_1 = where(%b8, %w16_9, %w16_1) : f64  %w8_2 = where(%b8, %w16_10, %w16_2) : f64
  %w8_3 = where(%b8, %w16_11, %w16_3) : f64  %w8_4 = where(%b8, %w16_12, %w16_4) : f64
  %w8_5 = where(%b8, %w16_13, %w16_5) : f64  %w8_6 = where(%b8, %w16_14, %w16_6) : f64
  %w8_7 = where(%b8, %w16_15, %w16_7) : f64  %w8_8 = where(%b8, %w16_16, %w16_8) : f64
  %w8_9 = where(%b8, %w16_17, %w16_9) : f64  %w8_10 = where(%b8, %w16_18, %w16_10) : f64
  %w8_11 = where(%b8, %w16_19, %w16_11) : f64  %w8_12 = where(%b8, %w16_20, %w16_12) : f64
  %w8_13 = where(%b8, %w16_21, %w16_13) : f64  %w8_14 = where(%b8, %w16_22, %w16_14) : f64
  %w8_15 = where(%b8, %w16_23, %w16_15) : f64  %w4_0 = where(%b4, %w8_4, %w8_0) : f64
  %w4_1 = where(%b4, %w8_5, %w8_1) : f64  %w4_2 = where(%b4, %w8_6, %w8_2) : f64
  %w4_3 = where(%b4, %w8_7, %w8_3) : f64  %w4_4 = where(%b4, %w8_8, %w8_4) : f64
  %w4_5 = where(%b4, %w8_9, %w8_5) : f64  %w4_6 = where(%b4, %w8_10, %w8_6) : f64
  %w4_7 = where(%b4, %w8_11, %w8_7) : f64  %w4_8 = where(%b4, %w8_12, %w8_8) : f64
  %w4_9 = where(%b4, %w8_13, %w8_9) : f64  %w4_10 = where(%b4, %w8_14, %w8_10) : f64
  %w4_11 = where(%b4, %w8_15, %w8_11) : f64  %w2_0 = where(%b2, %w4_2, %w4_0) : f64
  %w2_1 = where(%b2, %w4_3, %w4_1) : f64  %w2_2 = where(%b2, %w4_4, %w4_2) : f64
  %w2_3 = where(%b2, %w4_5, %w4_3) : f64  %w2_4 = where(%b2, %w4_6, %w4_4) : f64
  %w2_5 = where(%b2, %w4_7, %w4_5) : f64  %w2_6 = where(%b2, %w4_8, %w4_6) : f64
  %w2_7 = where(%b2, %w4_9, %w4_7) : f64  %w2_8 = where(%b2, %w4_10, %w4_8) : f64
  %w2_9 = where(%b2, %w4_11, %w4_9) : f64  %w1_0 = where(%b1, %w2_1, %w2_0) : f64
  %w1_1 = where(%b1, %w2_2, %w2_1) : f64  %w1_2 = where(%b1, %w2_3, %w2_2) : f64
  %w1_3 = where(%b1, %w2_4, %w2_3) : f64  %w1_4 = where(%b1, %w2_5, %w2_4) : f64
  %w1_5 = where(%b1, %w2_6, %w2_5) : f64  %w1_6 = where(%b1, %w2_7, %w2_6) : f64
  %w1_7 = where(%b1, %w2_8, %w2_7) : f64  %w1_8 = where(%b1, %w2_9, %w2_8) : f64  %xb = bits(%x1) : u64
  %hb = bitwise_and(%xb, 18446744073575333888) : u64  %xh = from_bits(%hb) : f64  %xl = sub(%x1, %xh) : f64
  %ph0 = mul(%xh, %w1_0) : f64  %nh0 = round(%ph0) : f64  %fh0 = sub(%ph0, %nh0) : f64  %pl0 = mul(%xl, %w1_0) : f64
  %nl0 = round(%pl0) : f64  %fl0 = sub(%pl0, %nl0) : f64  %s1 = mul(%w1_1, 5.960464477539063e-08) : f64
  %ph1 = mul(%xh, %s1) : f64  %nh1 = round(%ph1) : f64  %fh1 = sub(%ph1, %nh1) : f64  %pl1 = mul(%xl, %s1) : f64
  %nl1 = round(%pl1) : f64  %fl1 = sub(%pl1, %nl1) : f64  %s2 = mul(%w1_2, 3.552713678800501e-15) : f64
  %ph2 = mul(%xh, %s2) : f64  %nh2 = round(%ph2) : f64  %fh2 = sub(%ph2, %nh2) : f64  %pl2 = mul(%xl, %s2) : f64
  %nl2 = round(%pl2) : f64  %fl2 = sub(%pl2, %nl2) : f64  %s3 = mul(%w1_3, 2.117582368135751e-22) : f64
  %ph3 = mul(%xh, %s3) : f64  %nh3 = round(%ph3) : f64  %fh3 = sub(%ph3, %nh3) : f64  %pl3 = mul(%xl, %s3) : f64
  %s4 = mul(%w1_4, 1.262177448353619e-29) : f64  %ph4 = mul(%xh, %s4) : f64  %pl4 = mul(%xl, %s4) : f64
  %s5 = mul(%w1_5, 7.52316384526264e-37) : f64  %ph5 = mul(%xh, %s5) : f64  %pl5 = mul(%xl, %s5) : f64
  %s6 = mul(%w1_6, 4.484155085839415e-44) : f64  %ph6 = mul(%xh, %s6) : f64  %pl6 = mul(%xl, %s6) : f64
  %s7 = mul(%w1_7, 2.6727647100921956e-51) : f64  %ph7 = mul(%xh, %s7) : f64  %pl7 = mul(%xl, %s7) : f64
  %s8 = mul(%w1_8, 1.5930919111324523e-58) : f64  %ph8 = mul(%xh, %s8) : f64  %pl8 = mul(%xl, %s8) : f64
  %a1 = add(%fh0, %fh1) : f64  %a2 = add(%a1, %fl0) : f64  %a3 = add(%a2, %fh2) : f64  %a4 = add(%a3, %fl1) : f64
  %a5 = add(%a4, %fh3) : f64  %a6 = add(%a5, %fl2) : f64  %a7 = add(%a6, %ph4) : f64  %a8 = add(%a7, %pl3) : f64
  %a9 = mul(%a8, 4) : f64  %q = round(%a9) : f64  %q4 = mul(%q, 0.25) : f64  %g0 = sub(%fh0, %q4) : f64
  %g1 = add(%g0, %fh1) : f64  %u1 = sub(%g1, %g0) : f64  %v1 = sub(%g1, %u1) : f64  %d1 = sub(%fh1, %u1) : f64
  %c1 = sub(%g0, %v1) : f64  %e1 = add(%c1, %d1) : f64  %g2 = add(%g1, %fl0) : f64  %u2 = sub(%g2, %g1) : f64
  %v2 = sub(%g2, %u2) : f64  %d2 = sub(%fl0, %u2) : f64  %c2 = sub(%g1, %v2) : f64  %e2 = add(%c2, %d2) : f64
  %g3 = add(%g2, %fh2) : f64  %u3 = sub(%g3, %g2) : f64  %v3 = sub(%g3, %u3) : f64  %d3 = sub(%fh2, %u3) : f64
  %c3 = sub(%g2, %v3) : f64  %e3 = add(%c3, %d3) : f64  %g4 = add(%g3, %fl1) : f64  %u4 = sub(%g4, %g3) : f64
  %v4 = sub(%g4, %u4) : f64  %d4 = sub(%fl1, %u4) : f64  %c4 = sub(%g3, %v4) : f64  %e4 = add(%c4, %d4) : f64
  %g5 = add(%g4, %fh3) : f64  %u5 = sub(%g5, %g4) : f64  %v5 = sub(%g5, %u5) : f64  %d5 = sub(%fh3, %u5) : f64
  %c5 = sub(%g4, %v5) : f64  %e5 = add(%c5, %d5) : f64  %g6 = add(%g5, %fl2) : f64  %u6 = sub(%g6, %g5) : f64
  %v6 = sub(%g6, %u6) : f64  %d6 = sub(%fl2, %u6) : f64  %c6 = sub(%g5, %v6) : f64  %e6 = add(%c6, %d6) : f64
  %g7 = add(%g6, %ph4) : f64  %u7 = sub(%g7, %g6) : f64  %v7 = sub(%g7, %u7) : f64  %d7 = sub(%ph4, %u7) : f64
  %c7 = sub(%g6, %v7) : f64  %e7 = add(%c7, %d7) : f64  %g8 = add(%g7, %pl3) : f64  %u8 = sub(%g8, %g7) : f64
  %v8 = sub(%g8, %u8) : f64  %d8 = sub(%pl3, %u8) : f64  %c8 = sub(%g7, %v8) : f64  %e8 = add(%c8, %d8) : f64
  %g9 = add(%g8, %ph5) : f64  %u9 = sub(%g9, %g8) : f64  %v9 = sub(%g9, %u9) : f64  %d9 = sub(%ph5, %u9) : f64
  %c9 = sub(%g8, %v9) : f64  %e9 = add(%c9, %d9) : f64  %g10 = add(%g9, %pl4) : f64  %u10 = sub(%g10, %g9) : f64
  %v10 = sub(%g10, %u10) : f64  %d10 = sub(%pl4, %u10) : f64  %c10 = sub(%g9, %v10) : f64
  %e10 = add(%c10, %d10) : f64  %lo0 = add(%pl8, %pl7) : f64  %lo1 = add(%lo0, %ph8) : f64
  %lo2 = add(%lo1, %pl6) : f64  %lo3 = add(%lo2, %ph7) : f64  %lo4 = add(%lo3, %pl5) : f64
  %lo5 = add(%lo4, %ph6) : f64  %lo6 = add(%lo5, %e10) : f64  %lo7 = add(%lo6, %e9) : f64  %lo8 = add(%lo7, %e8) : f64
  %lo9 = add(%lo8, %e7) : f64  %lo10 = add(%lo9, %e6) : f64  %lo11 = add(%lo10, %e5) : f64
  %lo12 = add(%lo11, %e4) : f64  %lo13 = add(%lo12, %e3) : f64  %lo14 = add(%lo13, %e2) : f64
  %lo15 = add(%lo14, %e1) : f64)";

// Of the quarter turn %q and the rest: two polynomials, swapped and negated.
inline constexpr std::string_view kSinOfTurnsF64 = R"(
  %g = add(%g10, %lo15) : f64
  %t0 = sub(%g10, %g) : f64
  %t1 = add(%t0, %lo15) : f64
  %l2 = mul(%t1, 6.283185307179586) : f64
  %z = mul(%g, %g) : f64
  %sn0 = fma(%z, -0.7116084387510548, 3.8197866456287977) : f64
  %sn1 = fma(%sn0, %z, -15.09464037268528) : f64
  %sn2 = fma(%sn1, %z, 42.058693928661306) : f64
  %sn3 = fma(%sn2, %z, -76.70585975299636) : f64
  %sn4 = fma(%sn3, %z, 81.60524927607493) : f64
  %sn5 = fma(%sn4, %z, -41.34170224039976) : f64
  %sn6 = fma(%sn5, %z, 6.283185307179586) : f64
  %si = mul(%g, %sn6) : f64
  %cs0 = fma(%z, 0.27947571152348677, -1.7143173356878807) : f64
  %cs1 = fma(%cs0, %z, 7.903535226556979) : f64
  %cs2 = fma(%cs1, %z, -26.426256773011993) : f64
  %cs3 = fma(%cs2, %z, 60.24464137182199) : f64
  %cs4 = fma(%cs3, %z, -85.45681720669357) : f64
  %cs5 = fma(%cs4, %z, 64.9393940226683) : f64
  %cs6 = fma(%cs5, %z, -19.739208802178716) : f64
  %cs7 = fma(%cs6, %z, 1) : f64
  %sin = fma(%l2, %cs7, %si) : f64
  %cd = mul(%l2, %si) : f64
  %cos = sub(%cs7, %cd) : f64
  %k2 = mul(%q, 0.5) : f64
  %h = floor(%k2) : f64
  %h2 = mul(%h, 0.5) : f64
  %hf = floor(%h2) : f64
  %odd = ne(%k2, %h) : bool
  %minus = ne(%h2, %hf) : bool
  %negative = lt(%x, 0) : bool
  %flip = logical_xor(%minus, %negative) : bool
  %v = where(%odd, %cos, %sin) : f64
  %w = neg(%v) : f64
  %y = where(%flip, %w, %v) : f64
  %tiny = lt(%a, 1e-08) : bool
  %r = where(%tiny, %x, %y) : f64
  yield %r)";
inline constexpr std::string_view kCosOfTurnsF64 = R"(
  %g = add(%g10, %lo15) : f64
  %t0 = sub(%g10, %g) : f64
  %t1 = add(%t0, %lo15) : f64
  %l2 = mul(%t1, 6.283185307179586) : f64
  %z = mul(%g, %g) : f64
  %sn0 = fma(%z, -0.7116084387510548, 3.8197866456287977) : f64
  %sn1 = fma(%sn0, %z, -15.09464037268528) : f64
  %sn2 = fma(%sn1, %z, 42.058693928661306) : f64
  %sn3 = fma(%sn2, %z, -76.70585975299636) : f64
  %sn4 = fma(%sn3, %z, 81.60524927607493) : f64
  %sn5 = fma(%sn4, %z, -41.34170224039976) : f64
  %sn6 = fma(%sn5, %z, 6.283185307179586) : f64
  %si = mul(%g, %sn6) : f64
  %cs0 = fma(%z, 0.27947571152348677, -1.7143173356878807) : f64
  %cs1 = fma(%cs0, %z, 7.903535226556979) : f64
  %cs2 = fma(%cs1, %z, -26.426256773011993) : f64
  %cs3 = fma(%cs2, %z, 60.24464137182199) : f64
  %cs4 = fma(%cs3, %z, -85.45681720669357) : f64
  %cs5 = fma(%cs4, %z, 64.9393940226683) : f64
  %cs6 = fma(%cs5, %z, -19.739208802178716) : f64
  %cs7 = fma(%cs6, %z, 1) : f64
  %sin = fma(%l2, %cs7, %si) : f64
  %cd = mul(%l2, %si) : f64
  %cos = sub(%cs7, %cd) : f64
  %k = add(%q, 1) : f64
  %k2 = mul(%k, 0.5) : f64
  %h = floor(%k2) : f64
  %h2 = mul(%h, 0.5) : f64
  %hf = floor(%h2) : f64
  %odd = ne(%k2, %h) : bool
  %minus = ne(%h2, %hf) : bool
  %v = where(%odd, %cos, %sin) : f64
  %w = neg(%v) : f64
  %y = where(%minus, %w, %v) : f64
  yield %y)";

inline constexpr std::string_view kSinF64 = kJoin<kTurnsF64, kSinOfTurnsF64>;
inline constexpr std::string_view kCosF64 = kJoin<kTurnsF64, kCosOfTurnsF64>;

}  // namespace fusejit::ir::fragments
