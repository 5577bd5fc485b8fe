// fmod and remainder in f64, exact for all arguments without a loop. With a = ma·2^e·2^d and b = mb·2^e (integers
// ma, mb below 2^53) the result is (ma·2^d mod mb)·2^e, and 2^d mod mb comes from 2^⌊d/64⌋ by six squarings, each
// doubled where d has that bit: exponentiation modulo mb. A product modulo mb is exact by Dekker's products: u·v −
// round(u·v/mb)·mb in two parts.
#pragma once

#include <string_view>

#include "ir/ops/fragments/join.h"

namespace fusejit::ir::fragments {

inline constexpr std::string_view kModF64 = R"(
  %ua = abs(%a) : f64  %ub = abs(%b) : f64  %asmall = lt(%ua, 2.2250738585072014e-308) : bool
  %aup = mul(%ua, 18014398509481984) : f64  %anorm = where(%asmall, %aup, %ua) : f64  %abits = bits(%anorm) : u64
  %abe = shr(%abits, 52) : u64  %amant = bitwise_and(%abits, 4503599627370495) : u64
  %aint = bitwise_or(%amant, 4841369599423283200) : u64  %bsmall = lt(%ub, 2.2250738585072014e-308) : bool
  %bup = mul(%ub, 18014398509481984) : f64  %bnorm = where(%bsmall, %bup, %ub) : f64  %bbits = bits(%bnorm) : u64
  %bbe = shr(%bbits, 52) : u64  %bmant = bitwise_and(%bbits, 4503599627370495) : u64
  %bint = bitwise_or(%bmant, 4841369599423283200) : u64  %ma = from_bits(%aint) : f64  %m = from_bits(%bint) : f64
  %inv = div(1, %m) : f64  %adown = where(%asmall, 54, 0) : u64  %bdown = where(%bsmall, 54, 0) : u64
  %ea = sub(%abe, %adown) : u64  %eb = sub(%bbe, %bdown) : u64  %d = sub(%ea, %eb) : u64
  %mc = mul(%m, 134217729) : f64  %md = sub(%mc, %m) : f64  %mh = sub(%mc, %md) : f64  %ml = sub(%m, %mh) : f64
  %top0 = shr(%d, 6) : u64  %top1 = bitwise_and(%top0, 63) : u64  %top2 = add(%top1, 1023) : u64
  %top3 = shl(%top2, 52) : u64  %t = from_bits(%top3) : f64  %s32c = mul(%t, 134217729) : f64
  %s32d = sub(%s32c, %t) : f64  %s32h = sub(%s32c, %s32d) : f64  %s32l = sub(%t, %s32h) : f64
  %s32_p = mul(%t, %t) : f64  %s32_0 = mul(%s32h, %s32h) : f64  %s32_1 = sub(%s32_0, %s32_p) : f64
  %s32_2 = mul(%s32h, %s32l) : f64  %s32_3 = add(%s32_1, %s32_2) : f64  %s32_4 = mul(%s32l, %s32h) : f64
  %s32_5 = add(%s32_3, %s32_4) : f64  %s32_6 = mul(%s32l, %s32l) : f64  %s32_e = add(%s32_5, %s32_6) : f64
  %s32_q0 = mul(%s32_p, %inv) : f64  %s32_q = round(%s32_q0) : f64  %s32_qc = mul(%s32_q, 134217729) : f64
  %s32_qd = sub(%s32_qc, %s32_q) : f64  %s32_qh = sub(%s32_qc, %s32_qd) : f64  %s32_ql = sub(%s32_q, %s32_qh) : f64
  %s32_tp = mul(%s32_q, %m) : f64  %s32_t0 = mul(%s32_qh, %mh) : f64  %s32_t1 = sub(%s32_t0, %s32_tp) : f64
  %s32_t2 = mul(%s32_qh, %ml) : f64  %s32_t3 = add(%s32_t1, %s32_t2) : f64  %s32_t4 = mul(%s32_ql, %mh) : f64
  %s32_t5 = add(%s32_t3, %s32_t4) : f64  %s32_t6 = mul(%s32_ql, %ml) : f64  %s32_te = add(%s32_t5, %s32_t6) : f64
  %s32_x = sub(%s32_p, %s32_tp) : f64  %s32_y = sub(%s32_e, %s32_te) : f64  %s32_z = add(%s32_x, %s32_y) : f64
  %s32_i = mul(%s32_z, %inv) : f64  %s32_j = round(%s32_i) : f64  %s32_k = mul(%s32_j, %m) : f64
  %s32_r = sub(%s32_z, %s32_k) : f64  %s32bit = bitwise_and(%d, 32) : u64  %s32set = ne(%s32bit, 0) : bool
  %s32dbl = add(%s32_r, %s32_r) : f64  %s32sel = where(%s32set, %s32dbl, %s32_r) : f64
  %s32bi = mul(%s32sel, %inv) : f64  %s32bj = round(%s32bi) : f64  %s32bk = mul(%s32bj, %m) : f64
  %s32br = sub(%s32sel, %s32bk) : f64  %s16c = mul(%s32br, 134217729) : f64  %s16d = sub(%s16c, %s32br) : f64
  %s16h = sub(%s16c, %s16d) : f64  %s16l = sub(%s32br, %s16h) : f64  %s16_p = mul(%s32br, %s32br) : f64
  %s16_0 = mul(%s16h, %s16h) : f64  %s16_1 = sub(%s16_0, %s16_p) : f64  %s16_2 = mul(%s16h, %s16l) : f64
  %s16_3 = add(%s16_1, %s16_2) : f64  %s16_4 = mul(%s16l, %s16h) : f64  %s16_5 = add(%s16_3, %s16_4) : f64
  %s16_6 = mul(%s16l, %s16l) : f64  %s16_e = add(%s16_5, %s16_6) : f64  %s16_q0 = mul(%s16_p, %inv) : f64
  %s16_q = round(%s16_q0) : f64  %s16_qc = mul(%s16_q, 134217729) : f64  %s16_qd = sub(%s16_qc, %s16_q) : f64
  %s16_qh = sub(%s16_qc, %s16_qd) : f64  %s16_ql = sub(%s16_q, %s16_qh) : f64  %s16_tp = mul(%s16_q, %m) : f64
  %s16_t0 = mul(%s16_qh, %mh) : f64  %s16_t1 = sub(%s16_t0, %s16_tp) : f64  %s16_t2 = mul(%s16_qh, %ml) : f64
  %s16_t3 = add(%s16_t1, %s16_t2) : f64  %s16_t4 = mul(%s16_ql, %mh) : f64  %s16_t5 = add(%s16_t3, %s16_t4) : f64
  %s16_t6 = mul(%s16_ql, %ml) : f64  %s16_te = add(%s16_t5, %s16_t6) : f64  %s16_x = sub(%s16_p, %s16_tp) : f64
  %s16_y = sub(%s16_e, %s16_te) : f64  %s16_z = add(%s16_x, %s16_y) : f64  %s16_i = mul(%s16_z, %inv) : f64
  %s16_j = round(%s16_i) : f64  %s16_k = mul(%s16_j, %m) : f64  %s16_r = sub(%s16_z, %s16_k) : f64
  %s16bit = bitwise_and(%d, 16) : u64  %s16set = ne(%s16bit, 0) : bool  %s16dbl = add(%s16_r, %s16_r) : f64
  %s16sel = where(%s16set, %s16dbl, %s16_r) : f64  %s16bi = mul(%s16sel, %inv) : f64  %s16bj = round(%s16bi) : f64
  %s16bk = mul(%s16bj, %m) : f64  %s16br = sub(%s16sel, %s16bk) : f64  %s8c = mul(%s16br, 134217729) : f64
  %s8d = sub(%s8c, %s16br) : f64  %s8h = sub(%s8c, %s8d) : f64  %s8l = sub(%s16br, %s8h) : f64
  %s8_p = mul(%s16br, %s16br) : f64  %s8_0 = mul(%s8h, %s8h) : f64  %s8_1 = sub(%s8_0, %s8_p) : f64
  %s8_2 = mul(%s8h, %s8l) : f64  %s8_3 = add(%s8_1, %s8_2) : f64  %s8_4 = mul(%s8l, %s8h) : f64
  %s8_5 = add(%s8_3, %s8_4) : f64  %s8_6 = mul(%s8l, %s8l) : f64  %s8_e = add(%s8_5, %s8_6) : f64
  %s8_q0 = mul(%s8_p, %inv) : f64  %s8_q = round(%s8_q0) : f64  %s8_qc = mul(%s8_q, 134217729) : f64
  %s8_qd = sub(%s8_qc, %s8_q) : f64  %s8_qh = sub(%s8_qc, %s8_qd) : f64  %s8_ql = sub(%s8_q, %s8_qh) : f64
  %s8_tp = mul(%s8_q, %m) : f64  %s8_t0 = mul(%s8_qh, %mh) : f64  %s8_t1 = sub(%s8_t0, %s8_tp) : f64
  %s8_t2 = mul(%s8_qh, %ml) : f64  %s8_t3 = add(%s8_t1, %s8_t2) : f64  %s8_t4 = mul(%s8_ql, %mh) : f64
  %s8_t5 = add(%s8_t3, %s8_t4) : f64  %s8_t6 = mul(%s8_ql, %ml) : f64  %s8_te = add(%s8_t5, %s8_t6) : f64
  %s8_x = sub(%s8_p, %s8_tp) : f64  %s8_y = sub(%s8_e, %s8_te) : f64  %s8_z = add(%s8_x, %s8_y) : f64
  %s8_i = mul(%s8_z, %inv) : f64  %s8_j = round(%s8_i) : f64  %s8_k = mul(%s8_j, %m) : f64
  %s8_r = sub(%s8_z, %s8_k) : f64  %s8bit = bitwise_and(%d, 8) : u64  %s8set = ne(%s8bit, 0) : bool
  %s8dbl = add(%s8_r, %s8_r) : f64  %s8sel = where(%s8set, %s8dbl, %s8_r) : f64  %s8bi = mul(%s8sel, %inv) : f64
  %s8bj = round(%s8bi) : f64  %s8bk = mul(%s8bj, %m) : f64  %s8br = sub(%s8sel, %s8bk) : f64
  %s4c = mul(%s8br, 134217729) : f64  %s4d = sub(%s4c, %s8br) : f64  %s4h = sub(%s4c, %s4d) : f64
  %s4l = sub(%s8br, %s4h) : f64  %s4_p = mul(%s8br, %s8br) : f64  %s4_0 = mul(%s4h, %s4h) : f64
  %s4_1 = sub(%s4_0, %s4_p) : f64  %s4_2 = mul(%s4h, %s4l) : f64  %s4_3 = add(%s4_1, %s4_2) : f64
  %s4_4 = mul(%s4l, %s4h) : f64  %s4_5 = add(%s4_3, %s4_4) : f64  %s4_6 = mul(%s4l, %s4l) : f64
  %s4_e = add(%s4_5, %s4_6) : f64  %s4_q0 = mul(%s4_p, %inv) : f64  %s4_q = round(%s4_q0) : f64
  %s4_qc = mul(%s4_q, 134217729) : f64  %s4_qd = sub(%s4_qc, %s4_q) : f64  %s4_qh = sub(%s4_qc, %s4_qd) : f64
  %s4_ql = sub(%s4_q, %s4_qh) : f64  %s4_tp = mul(%s4_q, %m) : f64  %s4_t0 = mul(%s4_qh, %mh) : f64
  %s4_t1 = sub(%s4_t0, %s4_tp) : f64  %s4_t2 = mul(%s4_qh, %ml) : f64  %s4_t3 = add(%s4_t1, %s4_t2) : f64
  %s4_t4 = mul(%s4_ql, %mh) : f64  %s4_t5 = add(%s4_t3, %s4_t4) : f64  %s4_t6 = mul(%s4_ql, %ml) : f64
  %s4_te = add(%s4_t5, %s4_t6) : f64  %s4_x = sub(%s4_p, %s4_tp) : f64  %s4_y = sub(%s4_e, %s4_te) : f64
  %s4_z = add(%s4_x, %s4_y) : f64  %s4_i = mul(%s4_z, %inv) : f64  %s4_j = round(%s4_i) : f64
  %s4_k = mul(%s4_j, %m) : f64  %s4_r = sub(%s4_z, %s4_k) : f64  %s4bit = bitwise_and(%d, 4) : u64
  %s4set = ne(%s4bit, 0) : bool  %s4dbl = add(%s4_r, %s4_r) : f64  %s4sel = where(%s4set, %s4dbl, %s4_r) : f64
  %s4bi = mul(%s4sel, %inv) : f64  %s4bj = round(%s4bi) : f64  %s4bk = mul(%s4bj, %m) : f64
  %s4br = sub(%s4sel, %s4bk) : f64  %s2c = mul(%s4br, 134217729) : f64  %s2d = sub(%s2c, %s4br) : f64
  %s2h = sub(%s2c, %s2d) : f64  %s2l = sub(%s4br, %s2h) : f64  %s2_p = mul(%s4br, %s4br) : f64
  %s2_0 = mul(%s2h, %s2h) : f64  %s2_1 = sub(%s2_0, %s2_p) : f64  %s2_2 = mul(%s2h, %s2l) : f64
  %s2_3 = add(%s2_1, %s2_2) : f64  %s2_4 = mul(%s2l, %s2h) : f64  %s2_5 = add(%s2_3, %s2_4) : f64
  %s2_6 = mul(%s2l, %s2l) : f64  %s2_e = add(%s2_5, %s2_6) : f64  %s2_q0 = mul(%s2_p, %inv) : f64
  %s2_q = round(%s2_q0) : f64  %s2_qc = mul(%s2_q, 134217729) : f64  %s2_qd = sub(%s2_qc, %s2_q) : f64
  %s2_qh = sub(%s2_qc, %s2_qd) : f64  %s2_ql = sub(%s2_q, %s2_qh) : f64  %s2_tp = mul(%s2_q, %m) : f64
  %s2_t0 = mul(%s2_qh, %mh) : f64  %s2_t1 = sub(%s2_t0, %s2_tp) : f64  %s2_t2 = mul(%s2_qh, %ml) : f64
  %s2_t3 = add(%s2_t1, %s2_t2) : f64  %s2_t4 = mul(%s2_ql, %mh) : f64  %s2_t5 = add(%s2_t3, %s2_t4) : f64
  %s2_t6 = mul(%s2_ql, %ml) : f64  %s2_te = add(%s2_t5, %s2_t6) : f64  %s2_x = sub(%s2_p, %s2_tp) : f64
  %s2_y = sub(%s2_e, %s2_te) : f64  %s2_z = add(%s2_x, %s2_y) : f64  %s2_i = mul(%s2_z, %inv) : f64
  %s2_j = round(%s2_i) : f64  %s2_k = mul(%s2_j, %m) : f64  %s2_r = sub(%s2_z, %s2_k) : f64
  %s2bit = bitwise_and(%d, 2) : u64  %s2set = ne(%s2bit, 0) : bool  %s2dbl = add(%s2_r, %s2_r) : f64
  %s2sel = where(%s2set, %s2dbl, %s2_r) : f64  %s2bi = mul(%s2sel, %inv) : f64  %s2bj = round(%s2bi) : f64
  %s2bk = mul(%s2bj, %m) : f64  %s2br = sub(%s2sel, %s2bk) : f64  %s1c = mul(%s2br, 134217729) : f64
  %s1d = sub(%s1c, %s2br) : f64  %s1h = sub(%s1c, %s1d) : f64  %s1l = sub(%s2br, %s1h) : f64
  %s1_p = mul(%s2br, %s2br) : f64  %s1_0 = mul(%s1h, %s1h) : f64  %s1_1 = sub(%s1_0, %s1_p) : f64
  %s1_2 = mul(%s1h, %s1l) : f64  %s1_3 = add(%s1_1, %s1_2) : f64  %s1_4 = mul(%s1l, %s1h) : f64
  %s1_5 = add(%s1_3, %s1_4) : f64  %s1_6 = mul(%s1l, %s1l) : f64  %s1_e = add(%s1_5, %s1_6) : f64
  %s1_q0 = mul(%s1_p, %inv) : f64  %s1_q = round(%s1_q0) : f64  %s1_qc = mul(%s1_q, 134217729) : f64
  %s1_qd = sub(%s1_qc, %s1_q) : f64  %s1_qh = sub(%s1_qc, %s1_qd) : f64  %s1_ql = sub(%s1_q, %s1_qh) : f64
  %s1_tp = mul(%s1_q, %m) : f64  %s1_t0 = mul(%s1_qh, %mh) : f64  %s1_t1 = sub(%s1_t0, %s1_tp) : f64
  %s1_t2 = mul(%s1_qh, %ml) : f64  %s1_t3 = add(%s1_t1, %s1_t2) : f64  %s1_t4 = mul(%s1_ql, %mh) : f64
  %s1_t5 = add(%s1_t3, %s1_t4) : f64  %s1_t6 = mul(%s1_ql, %ml) : f64  %s1_te = add(%s1_t5, %s1_t6) : f64
  %s1_x = sub(%s1_p, %s1_tp) : f64  %s1_y = sub(%s1_e, %s1_te) : f64  %s1_z = add(%s1_x, %s1_y) : f64
  %s1_i = mul(%s1_z, %inv) : f64  %s1_j = round(%s1_i) : f64  %s1_k = mul(%s1_j, %m) : f64
  %s1_r = sub(%s1_z, %s1_k) : f64  %s1bit = bitwise_and(%d, 1) : u64  %s1set = ne(%s1bit, 0) : bool
  %s1dbl = add(%s1_r, %s1_r) : f64  %s1sel = where(%s1set, %s1dbl, %s1_r) : f64  %s1bi = mul(%s1sel, %inv) : f64
  %s1bj = round(%s1bi) : f64  %s1bk = mul(%s1bj, %m) : f64  %s1br = sub(%s1sel, %s1bk) : f64
  %tc = mul(%s1br, 134217729) : f64  %td = sub(%tc, %s1br) : f64  %th = sub(%tc, %td) : f64
  %tl = sub(%s1br, %th) : f64  %abi = mul(%ma, %inv) : f64  %abj = round(%abi) : f64  %abk = mul(%abj, %m) : f64
  %abr = sub(%ma, %abk) : f64  %vc = mul(%abr, 134217729) : f64  %vd = sub(%vc, %abr) : f64  %vh = sub(%vc, %vd) : f64
  %vl = sub(%abr, %vh) : f64  %fp = mul(%s1br, %abr) : f64  %f0 = mul(%th, %vh) : f64  %f1 = sub(%f0, %fp) : f64
  %f2 = mul(%th, %vl) : f64  %f3 = add(%f1, %f2) : f64  %f4 = mul(%tl, %vh) : f64  %f5 = add(%f3, %f4) : f64
  %f6 = mul(%tl, %vl) : f64  %fe = add(%f5, %f6) : f64  %fq0 = mul(%fp, %inv) : f64  %fq = round(%fq0) : f64
  %fqc = mul(%fq, 134217729) : f64  %fqd = sub(%fqc, %fq) : f64  %fqh = sub(%fqc, %fqd) : f64
  %fql = sub(%fq, %fqh) : f64  %ftp = mul(%fq, %m) : f64  %ft0 = mul(%fqh, %mh) : f64  %ft1 = sub(%ft0, %ftp) : f64
  %ft2 = mul(%fqh, %ml) : f64  %ft3 = add(%ft1, %ft2) : f64  %ft4 = mul(%fql, %mh) : f64  %ft5 = add(%ft3, %ft4) : f64
  %ft6 = mul(%fql, %ml) : f64  %fte = add(%ft5, %ft6) : f64  %fx = sub(%fp, %ftp) : f64  %fy = sub(%fe, %fte) : f64
  %fz = add(%fx, %fy) : f64  %fi = mul(%fz, %inv) : f64  %fj = round(%fi) : f64  %fk = mul(%fj, %m) : f64
  %fr = sub(%fz, %fk) : f64  %minus = lt(%fr, 0) : bool  %plus = add(%fr, %m) : f64
  %r0 = where(%minus, %plus, %fr) : f64  %r1 = mul(%r0, 2.220446049250313e-16) : f64  %scale0 = shl(%bbe, 52) : u64
  %scale = from_bits(%scale0) : f64  %r2 = mul(%r1, %scale) : f64  %r3 = mul(%r2, 5.551115123125783e-17) : f64
  %r4 = where(%bsmall, %r3, %r2) : f64  %less = lt(%ua, %ub) : bool  %r5 = where(%less, %ua, %r4) : f64
  %finite = lt(%ua, inf) : bool  %nonzero = gt(%ub, 0) : bool  %good = logical_and(%finite, %nonzero) : bool
  %r6 = where(%good, %r5, nan) : f64  %bnan = ne(%b, %b) : bool  %r7 = where(%bnan, nan, %r6) : f64
  %rn = neg(%r7) : f64  %an = lt(%a, 0) : bool  %mod = where(%an, %rn, %r7) : f64)";
inline constexpr std::string_view kYieldModF64 = "  yield %mod";
inline constexpr std::string_view kYieldRemainderF64 = R"(
  %mn = lt(%mod, 0) : bool
  %bn = lt(%b, 0) : bool
  %differ = logical_xor(%mn, %bn) : bool
  %some = ne(%mod, 0) : bool
  %fix = logical_and(%differ, %some) : bool
  %sum = add(%mod, %b) : f64
  %r = where(%fix, %sum, %mod) : f64
  yield %r)";

inline constexpr std::string_view kFmodF64 = kJoin<kModF64, kYieldModF64>;
inline constexpr std::string_view kRemainderF64 = kJoin<kModF64, kYieldRemainderF64>;

}  // namespace fusejit::ir::fragments
