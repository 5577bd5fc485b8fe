#include "ir/base/scalar.h"

#include <array>
#include <cmath>
#include <cstring>
#include <limits>

#include "ir/base/check.h"

namespace fusejit::ir {
namespace {

// A 16-bit float format: 1 sign bit, exponent bits, mantissa bits.
struct Format {
  int mantissa;
  int bias;
};
constexpr Format kF16 = {10, 15};
constexpr Format kBf16 = {7, 127};

// The nearest value of `format`, ties to even, rounding once; overflow to inf, denormals kept, NaN stays a quiet NaN.
std::uint16_t round_to(double value, Format format) {
  const auto bits = std::bit_cast<std::uint64_t>(value);
  const auto sign = static_cast<std::uint64_t>(bits >> 63 << 15);
  const std::uint64_t infinity = 0x7fffu >> format.mantissa << format.mantissa;
  const std::uint64_t fraction = bits & 0xfffffffffffffull;
  const int exponent = static_cast<int>(bits >> 52 & 0x7ff) - 1023;
  const auto pack = [&](std::uint64_t magnitude) { return static_cast<std::uint16_t>(sign | magnitude); };
  if (std::isnan(value)) {
    return pack(infinity | fraction >> (52 - format.mantissa) | std::uint64_t{1} << (format.mantissa - 1));
  }
  if (exponent > format.bias) return pack(infinity);
  // Below the smallest normal exponent the unit in the last place stays the same.
  const int too_small = std::max(0, 1 - format.bias - exponent);
  const int shift = 52 - format.mantissa + too_small;
  if (shift > 53) return pack(0);  // below half of the smallest denormal; f64 denormals are here as well
  const std::uint64_t mantissa = fraction | std::uint64_t{1} << 52;
  const std::uint64_t half = std::uint64_t{1} << (shift - 1);
  const std::uint64_t rest = mantissa & (2 * half - 1);
  std::uint64_t rounded = mantissa >> shift;
  if (rest > half || (rest == half && (rounded & 1) != 0)) ++rounded;
  // A carry out of the mantissa moves into the exponent: to the next power of two, to the first normal or to inf.
  if (too_small > 0) return pack(rounded);
  const auto biased = static_cast<std::uint64_t>(exponent + format.bias - 1);
  return pack((biased << format.mantissa) + rounded);
}

// |value| as f64 so that rounding the result to a float of at most 40 bits rounds the integer once (to odd, if
// inexact).
double to_odd(std::uint64_t magnitude) {
  if (magnitude >> 53 != 0) magnitude = (magnitude & ~std::uint64_t{0x7ff}) | ((magnitude & 0x7ff) != 0 ? 0x800 : 0);
  return static_cast<double>(magnitude);
}

Scalar float_scalar(double value, DType to) {
  if (to == DType::f64) return Scalar::of(value);
  if (to == DType::f32) return Scalar::of(static_cast<float>(value));
  return {to, to == DType::f16 ? f64_to_f16(value) : f64_to_bf16(value)};
}

// Toward zero, saturating, NaN to 0.
template <class Int>
Int saturate(double value) {
  constexpr Int kMin = std::numeric_limits<Int>::min();
  constexpr Int kMax = std::numeric_limits<Int>::max();
  if (std::isnan(value)) return 0;
  if (value <= static_cast<double>(kMin)) return kMin;
  if (value >= static_cast<double>(kMax)) return kMax;  // (double)kMax is kMax or the power of two after it
  return static_cast<Int>(value);
}

// The integer `value` (of i64 or u64 bits) wrapped to `to`, or converted to a float with one rounding.
Scalar from_integer(std::uint64_t value, bool is_signed, DType to) {
  const bool negative = is_signed && static_cast<std::int64_t>(value) < 0;
  if (is_float(to)) {
    const std::uint64_t magnitude = negative ? 0 - value : value;
    const double real = to == DType::f64 ? static_cast<double>(magnitude) : to_odd(magnitude);
    return float_scalar(negative ? -real : real, to);
  }
  if (to == DType::boolean || to == DType::b1) return {to, value != 0 ? 1u : 0u};
  return {to, value & ~std::uint64_t{0} >> (64 - bits(to))};
}

Scalar from_float(double value, DType to) {
  switch (to) {
    case DType::i8:
      return {to, static_cast<std::uint8_t>(saturate<std::int8_t>(value))};
    case DType::u8:
      return {to, saturate<std::uint8_t>(value)};
    case DType::i16:
      return {to, static_cast<std::uint16_t>(saturate<std::int16_t>(value))};
    case DType::i32:
      return Scalar::of(saturate<std::int32_t>(value));
    case DType::i64:
      return Scalar::of(saturate<std::int64_t>(value));
    case DType::u32:
      return Scalar::of(saturate<std::uint32_t>(value));
    case DType::u64:
      return Scalar::of(saturate<std::uint64_t>(value));
    case DType::boolean:
    case DType::b1:
      return {to, value != 0 ? 1u : 0u};  // NaN is true
    default:
      return float_scalar(value, to);
  }
}

}  // namespace

std::int64_t Scalar::integer() const {
  if (dtype == DType::boolean || dtype == DType::b1) return boolean() ? 1 : 0;
  if (!is_signed(dtype)) return static_cast<std::int64_t>(bits);
  const std::int64_t unused = 64 - fusejit::bits(dtype);  // at the top: the sign is shifted into them
  return static_cast<std::int64_t>(bits << unused) >> unused;
}

double Scalar::as_double() const {
  switch (dtype) {
    case DType::f16:
      return f16_to_f32(static_cast<std::uint16_t>(bits));
    case DType::bf16:
      return bf16_to_f32(static_cast<std::uint16_t>(bits));
    case DType::f32:
      return f32();
    case DType::f64:
      return f64();
    case DType::i8:
    case DType::u8:
    case DType::i16:
    case DType::i32:
    case DType::i64:
      return static_cast<double>(integer());
    case DType::u32:
    case DType::u64:
      return static_cast<double>(bits);
    case DType::boolean:
    case DType::b1:
      return boolean() ? 1 : 0;
  }
  return 0;
}

Scalar cast(Scalar value, DType to) {
  if (value.dtype == to) return value;
  if (value.dtype == DType::f32 && to == DType::bf16) return {to, f32_to_bf16(value.f32())};
  if (is_float(value.dtype)) return from_float(value.as_double(), to);
  return from_integer(static_cast<std::uint64_t>(value.integer()), is_signed(value.dtype), to);
}

Scalar end_of_range(DType dtype, bool largest) {
  if (dtype == DType::boolean || dtype == DType::b1) return {dtype, largest ? 1u : 0u};
  return from_float(largest ? std::numeric_limits<double>::infinity() : -std::numeric_limits<double>::infinity(),
                    dtype);
}

std::uint16_t f32_to_bf16(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  if ((bits & 0x7fffffffu) > 0x7f800000u) return static_cast<std::uint16_t>(bits >> 16 | 0x40);
  return static_cast<std::uint16_t>((bits + 0x7fffu + (bits >> 16 & 1)) >> 16);
}

std::uint16_t f64_to_bf16(double value) { return round_to(value, kBf16); }
std::uint16_t f32_to_f16(float value) { return round_to(static_cast<double>(value), kF16); }
std::uint16_t f64_to_f16(double value) { return round_to(value, kF16); }

float bf16_to_f32(std::uint16_t bits) { return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16); }

float f16_to_f32(std::uint16_t bits) {
  const std::uint32_t sign = static_cast<std::uint32_t>(bits & 0x8000u) << 16;
  const std::uint32_t exponent = bits >> 10 & 0x1f;
  const std::uint32_t mantissa = bits & 0x3ffu;
  if (exponent == 0x1f) return std::bit_cast<float>(sign | 0x7f800000u | mantissa << 13);
  if (exponent != 0) return std::bit_cast<float>(sign | (exponent + 112) << 23 | mantissa << 13);
  const float magnitude = static_cast<float>(mantissa) * 0x1p-24f;  // exact: an f32 normal, or 0
  return std::bit_cast<float>(sign | std::bit_cast<std::uint32_t>(magnitude));
}

Scalar load_element(const void* base, DType dtype, std::int64_t index) {
  const auto* const memory = static_cast<const unsigned char*>(base);
  if (dtype == DType::b1) return {dtype, memory[index / 8] >> (index % 8) & 1u};
  if (dtype == DType::boolean) return Scalar::of(memory[index] != 0);
  Scalar value{dtype, 0};
  const auto size = static_cast<std::size_t>(bytes(dtype));
  static_assert(std::endian::native == std::endian::little);
  std::memcpy(&value.bits, memory + static_cast<std::size_t>(index) * size, size);
  return value;
}

void store_element(void* base, DType dtype, std::int64_t index, Scalar value) {
  auto* const memory = static_cast<unsigned char*>(base);
  if (dtype == DType::b1) {
    const auto mask = static_cast<unsigned char>(1u << (index % 8));
    unsigned char& byte = memory[index / 8];
    byte = static_cast<unsigned char>(value.boolean() ? byte | mask : byte & ~mask);
    return;
  }
  FJ_ASSERT(value.dtype == dtype, "store_element: a {} into an array of {}", name(value.dtype), name(dtype));
  if (dtype == DType::boolean) value.bits = value.boolean() ? 1 : 0;
  const auto size = static_cast<std::size_t>(bytes(dtype));
  std::memcpy(memory + static_cast<std::size_t>(index) * size, &value.bits, size);
}

}  // namespace fusejit::ir
