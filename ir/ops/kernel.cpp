// Rows of kernel-ir.md §7: ops that lowering writes and no graph holds.
#include <array>
#include <bit>
#include <cmath>

#include "ir/kernel/philox.h"
#include "ir/ops/rows.h"

namespace fusejit::ir {
namespace {

Scalar fused(std::span<const Scalar> a, const Attrs&) {
  if (a[0].dtype == DType::f64) return Scalar::of(std::fma(a[0].f64(), a[1].f64(), a[2].f64()));
  return Scalar::of(std::fma(a[0].f32(), a[1].f32(), a[2].f32()));
}

Scalar bits_of(std::span<const Scalar> a, const Attrs&) {
  return {a[0].dtype == DType::f64 ? DType::u64 : DType::u32, a[0].bits};
}

// To the compute type of the word; a kernel that names a 16-bit type takes the low half.
Scalar from_bits(std::span<const Scalar> a, const Attrs&) {
  return {a[0].dtype == DType::u64 ? DType::f64 : DType::f32, a[0].bits};
}

float flushed(float x) { return std::fpclassify(x) == FP_SUBNORMAL ? std::copysign(0.0f, x) : x; }

// c + a * b of the low or high bf16 of two words, denormals in and out read as zero.
float fused_half(Scalar a, Scalar b, float c, bool high) {
  const auto element = [&](Scalar pair) {
    return flushed(std::bit_cast<float>(high ? pair.u32() & 0xffff0000u : pair.u32() << 16));
  };
  return flushed(std::fma(element(a), element(b), flushed(c)));
}

// vdpbf16ps: two fmas, the high elements first.
Scalar dot2(std::span<const Scalar> a, const Attrs&) {
  return Scalar::of(fused_half(a[0], a[1], fused_half(a[0], a[1], a[2].f32(), true), false));
}

// The parts of tdpbf16ps: chains of low and of high elements, which are added up at the end.
template <bool kHigh>
Scalar fma_half(std::span<const Scalar> a, const Attrs&) {
  return Scalar::of(fused_half(a[0], a[1], a[2].f32(), kHigh));
}
Scalar add_flushed(std::span<const Scalar> a, const Attrs&) {
  return Scalar::of(flushed(flushed(a[0].f32()) + flushed(a[1].f32())));
}

// vcvtneps2bf16: nearest even, denormals read as zero.
Scalar round_bf16(std::span<const Scalar> a, const Attrs&) {
  return cast(Scalar::of(flushed(a[0].f32())), DType::bf16);
}

// The word that the fourth argument names, the first without one.
Scalar random_word(std::span<const Scalar> a, const Attrs&) {
  const std::size_t word = a.size() > 3 ? a[3].bits & 3 : 0;
  return Scalar::of(philox(a[0].i64(), a[1].i64(), a[2].i64())[word]);
}

template <bool kLeft>
Scalar shifted(std::span<const Scalar> a, const Attrs&) {
  const std::uint64_t n = a[1].bits;
  if (n >= static_cast<std::uint64_t>(bits(a[0].dtype))) return {a[0].dtype, 0};
  const std::uint64_t result = kLeft ? a[0].bits << n : a[0].bits >> n;
  return {a[0].dtype, a[0].dtype == DType::u32 ? result & 0xffffffffu : result};
}

constexpr OpDef kRows[] = {
    {.op = Op::fma,
     .name = "fma",
     .family = Family::kernel,
     .min_operands = 3,
     .max_operands = 3,
     .dtype_rule = DTypeRule::floating,
     .no_gradient = true,
     .eval = fused,
     .llvm = {.floating = "llvm.fma"},
     .cuda = {.floating = "__fma{f}_rn($0, $1, $2)"},
     .cost = 2,
     .meaning = "a * b + c rounded once"},
    {.op = Op::bits,
     .name = "bits",
     .family = Family::kernel,
     .no_gradient = true,
     .eval = bits_of,
     .llvm = {.floating = "bitcast"},
     .cuda = {.floating = "fj_bits($0)"},
     .kernel_types = "F>W",
     .cost = 0,
     .meaning = "the bits of a float as an unsigned integer; 16-bit types zero-extended"},
    {.op = Op::from_bits,
     .name = "from_bits",
     .family = Family::kernel,
     .no_gradient = true,
     .eval = from_bits,
     .llvm = {.unsigned_int = "bitcast"},
     .cuda = {.integral = "fj_from_bits<{T}>($0)"},
     .kernel_types = "W>F",
     .cost = 0,
     .meaning = "the float with these bits; 16-bit types take the low half"},
    {.op = Op::dot2,
     .name = "dot2",
     .family = Family::kernel,
     .min_operands = 3,
     .max_operands = 3,
     .no_gradient = true,
     .eval = dot2,
     .llvm = {.floating = "llvm.x86.avx512bf16.dpbf16ps"},
     .kernel_types = "uuf>f",
     .cost = 4,
     .meaning = "c + a1 * b1, then + a0 * b0, of bf16 pairs, denormals as zero"},
    {.op = Op::fma_low,
     .name = "fma_low",
     .family = Family::kernel,
     .min_operands = 3,
     .max_operands = 3,
     .no_gradient = true,
     .eval = fma_half<false>,
     .kernel_types = "uuf>f",
     .cost = 2,
     .meaning = "c + a0 * b0 of bf16 pairs rounded once, denormals as zero"},
    {.op = Op::fma_high,
     .name = "fma_high",
     .family = Family::kernel,
     .min_operands = 3,
     .max_operands = 3,
     .no_gradient = true,
     .eval = fma_half<true>,
     .kernel_types = "uuf>f",
     .cost = 2,
     .meaning = "c + a1 * b1 of bf16 pairs rounded once, denormals as zero"},
    {.op = Op::add_flushed,
     .name = "add_flushed",
     .family = Family::kernel,
     .min_operands = 2,
     .max_operands = 2,
     .no_gradient = true,
     .eval = add_flushed,
     .kernel_types = "ff>f",
     .cost = 0,
     .meaning = "a + b, denormals as zero"},
    {.op = Op::round_bf16,
     .name = "round_bf16",
     .family = Family::kernel,
     .no_gradient = true,
     .eval = round_bf16,
     .llvm = {.floating = "llvm.x86.avx512bf16.cvtneps2bf16"},
     .kernel_types = "f>h",
     .cost = 0,
     .meaning = "the nearest bf16, of two the even one; denormals as zero"},
    {.op = Op::philox,
     .name = "philox",
     .family = Family::kernel,
     .min_operands = 3,
     .max_operands = 3,
     .no_gradient = true,
     .eval = random_word,
     .kernel_types = "iii>uuuu",
     .cost = 0,
     .meaning = "the four words of Philox4x32-10 for counter, stream and seed"},
    {.op = Op::shl,
     .name = "shl",
     .family = Family::kernel,
     .min_operands = 2,
     .max_operands = 2,
     .no_gradient = true,
     .eval = shifted<true>,
     .llvm = {.unsigned_int = "shl"},
     .cuda = {.integral = "$0 << $1"},
     .kernel_types = "UN>U",
     .cost = 0,
     .meaning = "shift left by a literal"},
    {.op = Op::shr,
     .name = "shr",
     .family = Family::kernel,
     .min_operands = 2,
     .max_operands = 2,
     .no_gradient = true,
     .eval = shifted<false>,
     .llvm = {.unsigned_int = "lshr"},
     .cuda = {.integral = "$0 >> $1"},
     .kernel_types = "UN>U",
     .cost = 0,
     .meaning = "logical shift right by a literal"},
};
static_assert(rows_fill(kRows, kKernel), "a row is missing or out of order");
static_assert(all_well_formed(kRows), "a row lacks a field of its family");

}  // namespace

std::span<const OpDef> kernel_rows() { return kRows; }

}  // namespace fusejit::ir
