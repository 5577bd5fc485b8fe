// DType: the element types of tensors and of kernel values.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace fusejit {

// Those before u32 are dtypes of tensors (ops.md §1). u32, u64 and b1 exist in kernels only (kernel-ir.md §3).
enum class DType : std::uint8_t { boolean, i8, u8, i16, i32, i64, f16, bf16, f32, f64, u32, u64, b1 };

// Their short names: fj::f32.
inline constexpr DType boolean = DType::boolean;
inline constexpr DType i8 = DType::i8;
inline constexpr DType u8 = DType::u8;
inline constexpr DType i16 = DType::i16;
inline constexpr DType i32 = DType::i32;
inline constexpr DType i64 = DType::i64;
inline constexpr DType f16 = DType::f16;
inline constexpr DType bf16 = DType::bf16;
inline constexpr DType f32 = DType::f32;
inline constexpr DType f64 = DType::f64;

// "f32", "bool", ...
std::string_view name(DType dtype);
// The dtype of that name, kernel dtypes included, or nothing.
std::optional<DType> dtype_named(std::string_view name);

// Bits of one element in memory: 1 for b1, 8 for bool.
constexpr std::int64_t bits(DType dtype) {
  constexpr std::int64_t table[] = {8, 8, 8, 16, 32, 64, 16, 16, 32, 64, 32, 64, 1};
  return table[static_cast<int>(dtype)];
}
// Bytes of `elements` elements (b1 is rounded up to whole bytes).
constexpr std::int64_t bytes(DType dtype, std::int64_t elements = 1) { return (bits(dtype) * elements + 7) / 8; }

// Of tensors and kernels alike.
constexpr bool is_float(DType d) { return d == DType::f16 || d == DType::bf16 || d == DType::f32 || d == DType::f64; }
// The integers narrower than the i32 that their arithmetic is done in.
constexpr bool is_narrow_int(DType d) { return d == DType::i8 || d == DType::u8 || d == DType::i16; }
constexpr bool is_int(DType d) { return is_narrow_int(d) || d == DType::i32 || d == DType::i64; }
// An integer with a sign: all of tensors but u8.
constexpr bool is_signed(DType d) { return is_int(d) && d != DType::u8; }
// The words of kernels.
constexpr bool is_unsigned(DType d) { return d == DType::u32 || d == DType::u64; }
// The dtype that arithmetic on `d` is done in: f32 for f16 and bf16, i32 for i8, u8 and i16, itself otherwise.
constexpr DType compute_type(DType d) {
  if (d == DType::f16 || d == DType::bf16) return DType::f32;
  return is_narrow_int(d) ? DType::i32 : d;
}
// True for the dtypes that a tensor may have.
constexpr bool is_tensor_dtype(DType d) { return static_cast<int>(d) <= static_cast<int>(DType::f64); }
// The least dtype that holds both of one kind (f16 with bf16 gives f32, i8 with u8 i16), or nothing if the kinds
// differ (ops.md §2).
std::optional<DType> promote(DType a, DType b);

}  // namespace fusejit
