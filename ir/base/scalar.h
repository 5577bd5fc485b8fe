// Scalar: one element of any dtype as its bits, with exact conversions. Literals of kernels and arguments of the
// interpreters are Scalars.
#pragma once

#include <bit>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "fusejit/dtype.h"

namespace fusejit::ir {

struct Scalar {
  DType dtype = DType::f32;
  std::uint64_t bits = 0;  // the element's bits, zero-extended

  static Scalar of(float v) { return {DType::f32, std::bit_cast<std::uint32_t>(v)}; }
  static Scalar of(double v) { return {DType::f64, std::bit_cast<std::uint64_t>(v)}; }
  static Scalar of(bool v) { return {DType::boolean, v ? 1u : 0u}; }
  static Scalar of(std::int32_t v) { return {DType::i32, static_cast<std::uint32_t>(v)}; }
  static Scalar of(std::int64_t v) { return {DType::i64, static_cast<std::uint64_t>(v)}; }
  static Scalar of(std::uint32_t v) { return {DType::u32, v}; }
  static Scalar of(std::uint64_t v) { return {DType::u64, v}; }

  float f32() const { return std::bit_cast<float>(static_cast<std::uint32_t>(bits)); }
  double f64() const { return std::bit_cast<double>(bits); }
  std::int32_t i32() const { return static_cast<std::int32_t>(bits); }
  std::int64_t i64() const { return static_cast<std::int64_t>(bits); }
  std::uint32_t u32() const { return static_cast<std::uint32_t>(bits); }
  bool boolean() const { return bits != 0; }

  // An integer's value, of u64 its bits; a bool is 0 or 1.
  std::int64_t integer() const;
  // The value as f64, exact for every dtype but i64/u64 beyond 2^53.
  double as_double() const;
  friend bool operator==(const Scalar&, const Scalar&) = default;
};

// ops.md §4 cast, rounding once: float to int toward zero, saturating, NaN to 0; to bool is x != 0; ints wrap.
Scalar cast(Scalar value, DType to);
// Is the integer one of the dtype, an int or bool?
inline bool holds(DType dtype, std::int64_t value) { return cast(Scalar::of(value), dtype).integer() == value; }
// The least and the largest value of the dtype: -inf and inf, false and true.
Scalar end_of_range(DType dtype, bool largest);

std::uint16_t f32_to_bf16(float value);   // nearest even, quiet NaN, denormals kept
std::uint16_t f64_to_bf16(double value);  // rounded once
float bf16_to_f32(std::uint16_t bits);
std::uint16_t f32_to_f16(float value);   // nearest even, overflow to inf, denormals kept
std::uint16_t f64_to_f16(double value);  // rounded once
float f16_to_f32(std::uint16_t bits);

// The shortest decimal that reads back to the same value in the scalar's dtype: "0.1", "1e-05", "-0.0", "inf", "3".
std::string literal_text(Scalar value);
// Reads "3", "-0.5", "0x1p-3", "-inf", "nan" directly into `dtype`, rounding once. Nothing if it is no number of that
// dtype: ints take integers within range only, bool takes 0 and 1.
std::optional<Scalar> read_literal(std::string_view text, DType dtype);

// Reads element `index` of an array of `dtype` (b1: bit index mod 8 of byte index / 8) and writes it.
Scalar load_element(const void* base, DType dtype, std::int64_t index);
void store_element(void* base, DType dtype, std::int64_t index, Scalar value);

}  // namespace fusejit::ir
