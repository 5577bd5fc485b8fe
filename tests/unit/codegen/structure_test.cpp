// Constructs that the worked kernels do not show, each as a small kernel: machine code against the interpreter.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "tests/unit/codegen/run_kernel.h"

namespace fusejit::test {
namespace {

struct Case {
  const char* name;
  const char* text;
};

const Case kCases[] = {
    {"tree64", R"(kernel @k(%x: f32[4,64] read, %y: f32[4,3] write) on x86:avx512 {
  phase { for %t in 0..4 threads {
    %s, %m, %o = for %l in 0..64 vector reduce (add, minimum, mul) : f32, f32, f32 {
      %0 = load %x[%t, %l] : f32  %1 = mul(%0, 0.5) : f32  %2 = add(%1, 1) : f32  yield %0, %1, %2 }
    store %y[%t, 0], %s  store %y[%t, 1], %m  store %y[%t, 2], %o } } })"},
    {"tree2_of_welford", R"(kernel @k(%x: f64[6] read, %y: f64[3,3] write) on x86:avx512 {
  phase { for %t in 0..3 threads {
    %n, %m, %s = for %l in 0..2 vector reduce welford : f64, f64, f64 { %0 = load %x[%t*2 + %l] : f64  yield 1, %0, 0 }
    store %y[%t, 0], %n  store %y[%t, 1], %m  store %y[%t, 2], %s } } })"},
    {"argmin_of_strided", R"(kernel @k(%x: f32[9,32] read, %v: f32[9] write, %i: i32[9] write) on x86:avx512 {
  phase { for %t in 0..9 threads {
    %a, %b = for %l in 0..8 vector reduce argmin : f32, i32 {
      %c, %d = for %k in 0..4 reduce argmin : f32, i32 {
        %0 = load %x[%t, %l*4 + %k] : f32  %1 = index(%l*4 + %k) : i32  yield %0, %1 }
      yield %c, %d }
    store %v[%t], %a  store %i[%t], %b } } })"},
    // Ties: the first where positions ascend, the least where they do not.
    {"first_of_a_window",
     R"(kernel @k(%x: f32[9,5,5,16] read, %v: f32[9,3,16] write, %i: i32[9,3,16] write) on x86:avx512 {
  phase { for %t in 0..9 threads { for %l in 0..16 vector {
    %a, %b = for %r in 0..3 unroll reduce argmax : f32, i32 {
      %c, %d = for %s in 1..4 unroll reduce argmax : f32, i32 {
        %0 = load %x[%t, %r, %s, %l] : f32  %1 = maximum(%0, 0) : f32  %2 = index(%r*5 + %s) : i32  yield %1, %2 }
      yield %c, %d }
    store %v[%t, 0, %l], %a  store %i[%t, 0, %l], %b
    %e, %f = for %r in 0..5 unroll reduce argmin : f32, i32 {
      %3 = load %x[%t, %r, 0, %l] : f32  %4 = minimum(%3, 0) : f32  %5 = index(%r) : i32  yield %4, %5 }
    store %v[%t, 1, %l], %e  store %i[%t, 1, %l], %f
    %g, %h = for %r in 0..5 unroll reduce argmax : f32, i32 {
      %6 = load %x[%t, %r, 4, %l] : f32  %7 = maximum(%6, 0) : f32  %8 = index(-%r + 4) : i32  yield %7, %8 }
    store %v[%t, 2, %l], %g  store %i[%t, 2, %l], %h } } } })"},
    {"turned_squares", R"(kernel @k(%x: f32[32,48] read, %y: f32[48,32] write) on x86:avx512 {
  phase { for %t in 0..2 threads { for %b in 0..3 { for %l in 0..16 vector { for %j in 0..16 unroll {
    %0 = load %x[%t*16 + %l, %b*16 + %j] : f32  store %y[%b*16 + %j, %t*16 + %l], %0 } } } } } })"},
    {"turned_squares_of_parts", R"(kernel @k(%x: f32[3,8,64] read, %y: f32[32,8] write) on x86:avx512 {
  phase { for %t in 0..4 threads { for %l in 0..8 vector { local %s: f32[8] register = 0
    for %p in 0..3 { for %j in 0..8 unroll { %0 = load %x[%p, %l, %t*16 + %j + 3] : f32  %1 = load %s[%j] : f32  %2 = add(%1, %0) : f32  store %s[%j], %2 } }
    for %j in 0..8 unroll { %3 = load %s[%j] : f32  store %y[%t*8 + %j, %l], %3 } } } } })"},
    {"turned_square_overwritten", R"(kernel @k(%x: f32[16,16] update, %y: f32[15,16] write) on x86:avx512 {
  phase { for %t in 0..1 threads { for %l in 0..16 vector { for %j in 0..15 unroll {
    %0 = load %x[%l, %j] : f32  %1 = load %x[%l, %j + 1] : f32  %2 = add(%0, %1) : f32
    store %x[%l, %j + 1], %2  store %y[%j, %l], %0 } } } } })"},
    {"runs",
     R"(kernel @k(%x: f32[4,33,9] read, %z: f32[2,40,5] read, %y: f32[4,9,16] write, %w: f32[2,3,32] write) on x86:avx512 {
  phase { for %t in 0..4 threads { for %j in 0..9 unroll { for %l in 0..16 vector {
    %0 = load %x[%t, %l + 17, -%j + 8] : f32  store %y[%t, %j, %l], %0 } } } }
  phase { for %t in 0..2 threads { for %b in 0..2 { for %j in 1..4 unroll { for %l in 0..16 vector {
    %1 = load %z[%t, %b*16 + %l + 8, %j] : f32  store %w[%t, %j - 1, %b*16 + %l], %1 } } } } } })"},
    {"runs_overwritten", R"(kernel @k(%x: f32[16,3] update, %y: f32[2,16] write) on x86:avx512 {
  phase { for %t in 0..1 threads { for %l in 0..16 vector { for %j in 0..2 unroll {
    %0 = load %x[%l, %j] : f32  %1 = load %x[%l, %j + 1] : f32  %2 = add(%0, %1) : f32
    store %x[%l, %j + 1], %2  store %y[%j, %l], %0 } } } } })"},
    // Of pixels of three channels, side by side and in planes; of lanes that run backwards; in the last elements of
    // all.
    {"windows",
     R"(kernel @k(%x: bf16[2,24,3] read, %p: bf16[2,3,24] read, %f: f32[2,24,3] read, %r: f32[2,20] read, %y: bf16[3,2,48] write, %z: f32[2,2,48] write) on x86:avx512 {
  phase { for %t in 0..2 threads { for %v in 0..3 { for %l in 0..16 vector {
    %0 = load %x[%t, %v*8 + %l / 2, %l % 2 + 1] : bf16  store %y[0, %t, %v*16 + %l], %0
    %1 = load %x[%t, %v*8 + %l / 2, (%l % 2)*2] : bf16  store %y[1, %t, %v*16 + %l], %1
    %2 = load %p[%t, (%l % 2)*2, %v*8 + %l / 2] : bf16  store %y[2, %t, %v*16 + %l], %2
    %3 = load %f[%t, %v*8 + %l / 2, %l % 2 + 1] : f32  store %z[0, %t, %v*16 + %l], %3
    %4 = load %r[%t, -%l + 19 - %v*2] : f32  store %z[1, %t, %v*16 + %l], %4 } } } } })"},
    {"every_other",
     R"(kernel @k(%x: f32[6,64] read, %h: bf16[6,64] read, %n: f32[6,33] read, %y: f32[6,32] write, %z: f32[6,32] write) on x86:avx512 {
  phase { for %t in 0..6 threads { for %v in 0..2 { for %l in 0..16 vector {
    %0 = load %x[%t, %v*32 + %l*2] : f32  %1 = load %x[%t, %v*32 + %l*2 + 1] : f32  %2 = sub(%0, %1) : f32
    %3 = load %n[%t, %l*2 + %v] : f32  %4 = add(%2, %3) : f32  store %y[%t, %v*16 + %l], %4
    %5 = load %h[%t, %v*32 + %l*2] : bf16  %6 = cast(%5) : f32  %7 = load %h[%t, %v*32 + %l*2 + 1] : bf16  %8 = cast(%7) : f32
    %9 = sub(%6, %8) : f32  store %z[%t, %v*16 + %l], %9 } } } } })"},
    {"gather_below_bound", R"(kernel @k(%x: f32[8,10] read, %i: i64[8,16] read, %y: f32[8,16] write) on x86:avx512 {
  phase { for %t in 0..8 threads { for %l in 0..16 vector {
    %raw = load %i[%t, %l] : i64  %masked = bitwise_and(%raw, 15) : i64
    %v = if %masked >= 0 and %masked < 10 : f32 { %a = load %x[%t, %masked] : f32  yield %a } else { yield nan }
    store %y[%t, %l], %v } } } })"},
    {"uniform_gather", R"(kernel @k(%x: f32[5,16] read, %i: i32[8] read, %y: f32[8,16] write) on x86:avx512 {
  phase { for %t in 0..8 threads {
    %raw = load %i[%t] : i32  %k = bitwise_and(%raw, 7) : i32
    for %l in 0..16 vector {
      %v = if %k < 5 and %k >= 0 : f32 { %a = load %x[%k, %l] : f32  yield %a } else { yield -1 }
      store %y[%t, %l], %v } } } })"},
    {"lane_rows", R"(kernel @k(%x: f32[4,16] read, %y: f32[4,16] write) on x86:avx512 {
  phase { local %r: f32[4,16] register = 2
    for %k in 0..4 unroll { for %l in 0..16 vector { %0 = load %x[%k, %l] : f32  %1 = load %r[%k, %l] : f32  %2 = mul(%0, %1) : f32
      store %r[%k, %l], %2 } }
    for %k in 0..4 unroll { for %l in 0..16 vector { %3 = load %r[%k, %l] : f32  store %y[%k, %l], %3 } } } })"},
    {"one_lane_stores", R"(kernel @k(%x: f32[5,16] read, %y: f32[5] write) on x86:avx512 {
  phase { for %t in 0..5 threads { local %keep: f32[1] register = 0
    for %l in 0..16 vector { %0 = load %x[%t, %l] : f32  if %l == 11 { store %keep[0], %0 } }
    %1 = load %keep[0] : f32  store %y[%t], %1 } } })"},
    {"bits_loaded_and_masked",
     R"(kernel @k(%m: b1[103] read, %x: f32[103] read, %y: f32[103] write, %n: b1[103] write) on x86:avx512 {
  phase { for %i in 0..6 { for %l in 0..16 vector {
      %0 = load %m[%i*16 + %l] : bool  %1 = load %x[%i*16 + %l] : f32  %2 = where(%0, %1, 0) : f32  store %y[%i*16 + %l], %2
      %3 = lt(%1, 0) : bool  store %n[%i*16 + %l], %3 } }
    for %l in 0..16 vector { if %l < 7 { %4 = load %m[%l + 96] : bool  %5 = load %x[%l + 96] : f32  %6 = where(%4, %5, 0) : f32
      store %y[%l + 96], %6  %7 = lt(%5, 0) : bool  store %n[%l + 96], %7 } } } })"},
    {"bits_scalar", R"(kernel @k(%m: b1[4,24] read, %y: bool[4,24] write) on x86:avx512 {
  phase { for %t in 0..4 threads { for %i in 0..24 { %0 = load %m[%t, %i] : bool  store %y[%t, %i], %0 } } } })"},
    {"bits_fetched_ahead", R"(kernel @k(%m: b1[4,24] read, %y: bool[4,24] write) on x86:avx512 {
  phase { for %t in 0..4 threads { prefetch %m[%t - 1, 16] l1  for %i in 0..24 { prefetch %m[%t + 1, %i] l2
    %0 = load %m[%t, %i] : bool  store %y[%t, %i], %0 } } } })"},
    {"bits_of_a_tail", R"(kernel @k(%n: b1[5] write, %m: b1[21] write) on x86:avx512 {
  phase { for %l in 0..16 vector { if %l < 5 { store %n[%l], 1 } }
    for %i in 0..2 { for %l in 0..16 vector { if %l + %i*16 < 21 { %0 = index(%l - %i) : i32  %1 = ge(%0, 0) : bool
      store %m[%i*16 + %l], %1 } } } } })"},
    {"one_value_stored_by_some_lanes", R"(kernel @k(%y: f32[4,16] write) on x86:avx512 {
  phase { for %t in 0..4 threads { for %l in 0..16 vector { local %a: f32[2] register = -1
    if %l < 5 { store %a[0], 3  if %t < 2 { store %a[1], 4 } }
    %0 = load %a[0] : f32  %1 = load %a[1] : f32  %2 = mul(%0, %1) : f32  store %y[%t, %l], %2 } } } })"},
    {"welford_of_empty_lanes", R"(kernel @k(%x: f64[3,3] read, %y: f64[3,3] write) on x86:avx512 {
  phase { for %t in 0..3 threads {
    %n, %m, %s = for %l in 0..8 vector reduce welford : f64, f64, f64 {
      %c, %v = if %l < 3 : f64, f64 { %0 = load %x[%t, %l] : f64  yield 1, %0 } else { yield 0, 0 }  yield %c, %v, 0 }
    store %y[%t, 0], %n  store %y[%t, 1], %m  store %y[%t, 2], %s } } })"},
    {"divided_lanes", R"(kernel @k(%x: f32[3,11] read, %y: f32[64] write) on x86:avx512 {
  phase { for %t in 0..4 threads { for %l in 0..16 vector {
    %0 = load %x[%l % 3, (%t*16 + %l) / 6] : f32  %1 = index((%t - %l) / 5) : f32  %2 = index((%l - 9) % 4) : f32
    %3 = add(%0, %1) : f32  %4 = mul(%3, %2) : f32  store %y[%t*16 + %l], %4 } } } })"},
    {"nested_lane_conditions",
     R"(kernel @k(%x: f32[7,16] read, %n: i32[7] read, %y: f32[7,16] update, %z: f32[7,16] write) on x86:avx512 {
  phase { for %t in 0..7 threads { for %l in 0..16 vector { local %a: f32[2] register = -1
    %0 = load %x[%t, %l] : f32  %c = lt(%0, 0.5) : bool
    if %c { store %a[0], %0  if %l < 9 { store %y[%t, %l], 3  store %a[1], %0 } else { store %y[%t, %l], %0 } }
    else { if %l >= 4 { %s = for %k in 0..3 reduce add : f32 { %1 = mul(%0, 2) : f32  yield %1 }  store %a[1], %s } }
    %2 = load %a[0] : f32  %3 = load %a[1] : f32  %4 = add(%2, %3) : f32  store %z[%t, %l], %4 } } } })"},
    {"uniform_load_below_lane_condition", R"(kernel @k(%x: f32[3] read, %y: f32[6,16] write) on x86:avx512 {
  phase { for %t in 0..6 threads { for %l in 0..16 vector {
    %v = if %l + %t*8 < 24 and %t < 3 : f32 { %0 = load %x[%t] : f32  yield %0 } else { yield 7 }  store %y[%t, %l], %v } } } })"},
    {"registers_around_branches_and_loops",
     R"(kernel @k(%x: f32[8,16] read, %n: i32 param, %y: f32[8,16] write) on x86:avx512 {
  phase { for %t in 0..8 threads { for %l in 0..16 vector { local %a: f32[3] register = 1
    for %i in %t..min(8, %t*2) { %0 = load %x[%i, %l] : f32
      if %i >= 5 { store %a[0], %0 } else { for %j in 0..2 { %1 = load %a[1] : f32  %2 = add(%1, %0) : f32  store %a[1], %2 } } }
    if %t < 4 { store %a[2], 5 }
    %3 = load %a[0] : f32  %4 = load %a[1] : f32  %5 = load %a[2] : f32  %6 = add(%3, %4) : f32  %7 = mul(%6, %5) : f32
    store %y[%t, %l], %7 } } } })"},
    {"swapped_registers", R"(kernel @k(%x: f32[2] read, %y: f32[2] write) on x86:avx512 {
  phase { local %a: f32[3] register = 0  %0 = load %x[0] : f32  %1 = load %x[1] : f32  store %a[0], %0  store %a[1], %1
    for %i in 0..5 { %2 = load %a[0] : f32  %3 = load %a[1] : f32  %4 = load %a[2] : f32  store %a[0], %3  store %a[1], %2  %5 = add(%4, %2) : f32 }
    %6 = load %a[0] : f32  %7 = load %a[1] : f32  store %y[0], %6  store %y[1], %7 } })"},
    {"scalar_parameters",
     R"(kernel @k(%a: f32 param, %b: f64 param, %c: i32 param, %d: i64 param, %y: f64[16] write) on x86:avx512 {
  phase { for %l in 0..16 vector { %0 = cast(%a) : f64  %1 = cast(%c) : f64  %2 = cast(%d) : f64  %3 = index(%l) : f64
    %4 = add(%0, %1) : f64  %5 = mul(%4, %b) : f64  %6 = add(%5, %2) : f64  %7 = mul(%6, %3) : f64  store %y[%l], %7 } } })"},
    {"half_precision_and_bools",
     R"(kernel @k(%x: f16[5,16] read, %b: bf16[5,16] read, %m: bool[5,16] read, %y: f16[5,16] write, %z: bf16[5,16] write, %n: bool[5,16] write) on x86:avx512 {
  phase { for %t in 0..5 threads { for %l in 0..16 vector { if %l < 13 {
    %0 = load %x[%t, %l] : f16  %1 = cast(%0) : f32  %2 = load %b[%t, %l] : bf16  %3 = cast(%2) : f32  %4 = add(%1, %3) : f32
    %5 = cast(%4) : f16  %6 = cast(%4) : bf16  %7 = load %m[%t, %l] : bool  %8 = where(%7, %0, %5) : f16
    store %y[%t, %l], %8  store %z[%t, %l], %6  %9 = logical_not(%7) : bool  store %n[%t, %l], %9 } else {
    store %y[%t, %l], 1  store %z[%t, %l], -2  store %n[%t, %l], 1 } } } } })"},
    {"phases_and_reused_scratch", R"(kernel @k(%x: f32[8,16] read, %y: f32[16] write) on x86:avx512 {
  work %w: f32[8,16]
  work %v: f32[8,2,16]
  phase { for %t in 0..8 threads {
    for %h in 0..2 { local %s: f32[16] scratch  for %l in 0..16 vector { %0 = load %x[%t, %l] : f32  store %s[%l], %0 }
      for %l in 0..16 vector { %1 = load %s[-%l + 15] : f32  store %v[%t, %h, %l], %1 } }
    if %t < 3 { local %q: f32[16] scratch = 4  for %l in 0..16 vector { %2 = load %q[%l] : f32  %3 = load %x[%t, %l] : f32
      %4 = add(%2, %3) : f32  store %w[%t, %l], %4 } } else { for %l in 0..16 vector { %5 = load %v[%t, 1, %l] : f32  store %w[%t, %l], %5 } } } }
  phase { for %l in 0..16 vector { %s = for %t in 0..8 reduce add : f32 { %0 = load %w[%t, %l] : f32  yield %0 }  store %y[%l], %s } } })"},
};

class Structure : public ::testing::TestWithParam<std::tuple<Case, Isa>> {};

TEST_P(Structure, MachineCodeEqualsInterpreter) {
  const auto& [c, isa] = GetParam();
  if (!codegen::x86::host_supports(isa)) GTEST_SKIP() << "this processor cannot run " << name(isa);
  const ir::Kernel kernel = ir::parse_kernel(for_isa(c.text, isa));
  ir::verify(kernel);
  const auto compiled = codegen::x86::compile(kernel, Target{.isa = isa});
  for (std::uint64_t seed = 1; seed <= 4; ++seed) {
    const Values values = seed % 2 == 0 ? Values::special : Values::ordinary;
    Operands expected = random_operands(kernel, values, seed);
    Operands actual = random_operands(kernel, values, seed);
    run_interpreted(kernel, expected);
    run_compiled(*compiled, actual, ir::TaskOrder::ascending);
    ASSERT_EQ(difference(kernel, expected, actual), "") << "seed " << seed;
  }
}

INSTANTIATE_TEST_SUITE_P(All, Structure,
                         ::testing::Combine(::testing::ValuesIn(kCases),
                                            ::testing::Values(Isa::x86_avx512, Isa::x86_avx2, Isa::x86_v2)),
                         [](const auto& info) {
                           return fmt::format("{}_{}", std::get<0>(info.param).name,
                                              static_cast<int>(std::get<1>(info.param)));
                         });

}  // namespace
}  // namespace fusejit::test
