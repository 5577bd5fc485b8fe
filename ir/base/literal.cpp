// Scalars as text: literal_text and read_literal of scalar.h.
#include <fmt/format.h>

#include <cmath>
#include <limits>

#include "ir/base/number.h"
#include "ir/base/scalar.h"

namespace fusejit::ir {
namespace {

std::uint16_t round16(double value, DType to) { return to == DType::f16 ? f64_to_f16(value) : f64_to_bf16(value); }

// The text of a number in a 16-bit float, rounded once. Reading through f64 rounds twice, which matters only where the
// f64 is half way between two neighbours: then the text itself says on which side it lies.
std::optional<Scalar> read_float16(std::string_view text, DType dtype) {
  const std::optional<double> near = read_double(text);
  if (!near) return std::nullopt;
  double value = *near;
  if (std::isfinite(value)) {
    const double away = value < 0 ? -std::numeric_limits<double>::infinity() : std::numeric_limits<double>::infinity();
    const bool is_tie = round16(std::nextafter(value, 0.0), dtype) != round16(std::nextafter(value, away), dtype);
    const int side = is_tie ? compare_with(text, value) : 0;
    if (side != 0) value = std::nextafter(value, side * std::numeric_limits<double>::infinity());
  }
  return Scalar{dtype, round16(value, dtype)};
}

std::optional<Scalar> read_integer(std::string_view text, DType dtype) {
  const bool negative = text.starts_with('-');
  const std::optional<std::uint64_t> magnitude = read_decimal_integer(text.substr(negative ? 1 : 0));
  if (!magnitude) return std::nullopt;
  const bool has_sign = is_signed(dtype);
  const int width = dtype == DType::boolean || dtype == DType::b1 ? 1 : static_cast<int>(bits(dtype));
  const std::uint64_t all = ~std::uint64_t{0} >> (64 - width), max = has_sign ? all >> 1 : all;
  const std::uint64_t limit = !negative ? max : has_sign ? max + 1 : 0;
  if (*magnitude > limit) return std::nullopt;
  const std::uint64_t value = negative ? 0 - *magnitude : *magnitude;
  return Scalar{dtype, value & all};
}

// The shortest decimal of a 16-bit float: with 1, 2, ... digits, the numbers next below and next above are tried.
// Integers that take no more room in full are written in full.
std::string shortest16(Scalar value) {
  const double real = value.as_double();
  const double plain_below = value.dtype == DType::f16 ? 65536 : 256;
  if (!std::isfinite(real) || real == 0 || (real == std::trunc(real) && std::abs(real) < plain_below)) {
    return shortest_text(real);
  }
  std::string best = shortest_text(real);
  for (int digits = 1; digits <= 5; ++digits) {
    const int exponent = static_cast<int>(std::floor(std::log10(std::abs(real)))) - digits + 1;
    const auto below = static_cast<std::int64_t>(std::abs(real) / std::pow(10.0, exponent));
    double distance = std::numeric_limits<double>::infinity();
    for (std::int64_t tried = below - 1; tried <= below + 1; ++tried) {
      const std::string text = fmt::format("{}{}e{}", real < 0 ? "-" : "", tried, exponent);
      const std::optional<Scalar> back = read_float16(text, value.dtype);
      const double decimal = read_double(text).value_or(0);
      if (back != value || std::abs(decimal - real) >= distance) continue;
      distance = std::abs(decimal - real);
      best = shortest_text(decimal);
    }
    if (std::isfinite(distance)) return best;
  }
  return best;
}

}  // namespace

std::string literal_text(Scalar value) {
  switch (value.dtype) {
    case DType::f32:
      return shortest_text(value.f32());
    case DType::f64:
      return shortest_text(value.f64());
    case DType::f16:
    case DType::bf16:
      return shortest16(value);
    case DType::i8:
    case DType::i16:
    case DType::i32:
    case DType::i64:
      return std::to_string(value.integer());
    case DType::boolean:
    case DType::b1:
      return value.boolean() ? "1" : "0";
    default:
      return std::to_string(value.bits);
  }
}

std::optional<Scalar> read_literal(std::string_view text, DType dtype) {
  if (dtype == DType::f32) {
    const std::optional<float> value = read_float(text);
    return value ? std::optional(Scalar::of(*value)) : std::nullopt;
  }
  if (dtype == DType::f64) {
    const std::optional<double> value = read_double(text);
    return value ? std::optional(Scalar::of(*value)) : std::nullopt;
  }
  return is_float(dtype) ? read_float16(text, dtype) : read_integer(text, dtype);
}

}  // namespace fusejit::ir
