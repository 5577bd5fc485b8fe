#include "ir/base/number.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <charconv>
#include <cmath>
#include <limits>

namespace fusejit::ir {
namespace {

// The parts of a finite, unsigned number text: ±0x d...d.d...d p exponent.
struct Parts {
  bool negative = false;
  bool hex = false;
  std::string digits;  // without leading and trailing zeros and without '.'; empty for zero
  std::int64_t exponent =
      0;  // the value is 0.digits · base^exponent; for hex the base is 16 and the power `binary` is added
  std::int64_t binary = 0;
};

// Takes "-", then "0x" off the front of `text`.
void take_prefix(std::string_view& text, bool& negative, bool& hex) {
  negative = text.starts_with('-');
  if (negative) text.remove_prefix(1);
  hex = text.size() > 2 && text[0] == '0' && (text[1] | 0x20) == 'x';
  if (hex) text.remove_prefix(2);
}

// The decimal exponent after 'e' or 'p', held within ±10^15, which is as good as infinite.
std::int64_t read_exponent(std::string_view text) {
  const bool negative = text.starts_with('-');
  if (negative || text.starts_with('+')) text.remove_prefix(1);
  constexpr std::int64_t kFar = 1'000'000'000'000'000;
  std::int64_t value = 0;
  for (const char c : text) value = std::min(kFar, value * 10 + (c - '0'));
  return negative ? -value : value;
}

Parts split(std::string_view text) {
  Parts parts;
  take_prefix(text, parts.negative, parts.hex);
  const std::size_t mark = text.find_first_of(parts.hex ? "pP" : "eE");
  const std::int64_t power = mark == std::string_view::npos ? 0 : read_exponent(text.substr(mark + 1));
  bool after_point = false;
  for (const char c : text.substr(0, mark)) {
    if (c == '.') {
      after_point = true;
    } else {
      if (!after_point) ++parts.exponent;
      if (parts.digits.empty() && c == '0') {
        --parts.exponent;  // a leading zero
      } else {
        parts.digits.push_back(c);
      }
    }
  }
  parts.digits.erase(parts.digits.find_last_not_of('0') + 1);
  (parts.hex ? parts.binary : parts.exponent) += power;
  return parts;
}

template <class Float>
std::optional<Float> read(std::string_view text) {
  bool negative = false;
  bool hex = false;
  const std::string_view whole = text;
  if (text == "nan") return std::numeric_limits<Float>::quiet_NaN();
  take_prefix(text, negative, hex);
  const auto with_sign = [&](Float value) { return negative ? -value : value; };
  if (text == "inf" && !hex) return with_sign(std::numeric_limits<Float>::infinity());
  // from_chars would take a second sign and words; a number of ours starts with a digit.
  const char first = text.empty() ? '\0' : static_cast<char>(text[0] | 0x20);
  const bool is_digit = (first >= '0' && first <= '9') || (hex && first >= 'a' && first <= 'f');
  if (!is_digit) return std::nullopt;
  Float value = 0;
  const char* const end = text.data() + text.size();
  const auto [stop, error] =
      std::from_chars(text.data(), end, value, hex ? std::chars_format::hex : std::chars_format::general);
  if (stop != end) return std::nullopt;
  if (error == std::errc::result_out_of_range) {  // too large or too small, and from_chars does not say which
    const Parts parts = split(whole);
    const bool large = parts.exponent * (parts.hex ? 4 : 1) + parts.binary > 0;
    return with_sign(large ? std::numeric_limits<Float>::infinity() : Float{0});
  }
  return error == std::errc() ? std::optional(with_sign(value)) : std::nullopt;
}

// The first 64 bits of a number other than zero, normalised: 0.1xxx · 2^exponent, and whether more bits follow.
struct Bits {
  std::int64_t exponent = 0;
  std::uint64_t top = 0;
  bool more = false;
};

Bits bits_of_hex(const Parts& parts) {
  Bits bits{parts.exponent * 4 + parts.binary, 0, parts.digits.size() > 17};
  const auto digit = [&](std::size_t i) -> std::uint64_t {
    if (i >= parts.digits.size()) return 0;
    const char c = static_cast<char>(parts.digits[i] | 0x20);
    return static_cast<std::uint64_t>(c >= 'a' ? c - 'a' + 10 : c & 0xf);
  };
  for (std::size_t i = 0; i < 16; ++i) bits.top = bits.top << 4 | digit(i);
  const int shift = std::countl_zero(bits.top);  // 0 to 3: the first digit is not 0
  const std::uint64_t next = digit(16) << shift;
  bits.top = bits.top << shift | next >> 4;
  bits.more = bits.more || (next & 0xf) != 0;
  bits.exponent -= shift;
  return bits;
}

Bits bits_of(double positive) {
  int exponent = 0;
  const double fraction = std::frexp(positive, &exponent);
  return {exponent, static_cast<std::uint64_t>(std::ldexp(fraction, 53)) << 11, false};
}

template <class T>
int order(const T& a, const T& b) {
  return a < b ? -1 : b < a ? 1 : 0;
}

int compare_hex(const Parts& parts, double positive) {
  const Bits a = bits_of_hex(parts);
  const Bits b = bits_of(positive);
  if (a.exponent != b.exponent) return order(a.exponent, b.exponent);
  if (a.top != b.top) return order(a.top, b.top);
  return a.more ? 1 : 0;
}

int compare_decimal(const Parts& parts, double positive) {
  std::array<char, 1200> buffer;  // an f64 has at most 767 significant digits
  const auto end =
      std::to_chars(buffer.data(), buffer.data() + buffer.size(), positive, std::chars_format::scientific, 780).ptr;
  const Parts exact = split({buffer.data(), static_cast<std::size_t>(end - buffer.data())});
  if (parts.exponent != exact.exponent) return order(parts.exponent, exact.exponent);
  return order(parts.digits.compare(exact.digits), 0);  // both are fractions: as in a dictionary
}

template <class Float>
std::string shortest(Float value) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value < 0 ? "-inf" : "inf";
  if (value == 0) return std::signbit(value) ? "-0.0" : "0";
  constexpr Float kExact = std::is_same_v<Float, float> ? 16777216.0 : 9007199254740992.0;
  const bool plain = value == std::trunc(value) && std::abs(value) < kExact;
  std::array<char, 64> buffer;
  char* const last = buffer.data() + buffer.size();
  const auto end = plain ? std::to_chars(buffer.data(), last, value, std::chars_format::fixed).ptr
                         : std::to_chars(buffer.data(), last, value).ptr;
  return {buffer.data(), end};
}

}  // namespace

std::optional<std::uint64_t> read_decimal_integer(std::string_view digits) {
  std::uint64_t value = 0;
  const char* const end = digits.data() + digits.size();
  const auto [stop, error] = std::from_chars(digits.data(), end, value);
  return error == std::errc() && stop == end ? std::optional(value) : std::nullopt;
}

std::optional<double> read_double(std::string_view text) { return read<double>(text); }
std::optional<float> read_float(std::string_view text) { return read<float>(text); }

int compare_with(std::string_view text, double value) {
  const Parts parts = split(text);
  const int sign = parts.digits.empty() ? 0 : parts.negative ? -1 : 1;
  const int sign_of_value = order(value, 0.0);
  if (sign != sign_of_value || sign == 0) return order(sign, sign_of_value);
  const double positive = std::abs(value);
  return sign * (parts.hex ? compare_hex(parts, positive) : compare_decimal(parts, positive));
}

std::string shortest_text(double value) { return shortest(value); }
std::string shortest_text(float value) { return shortest(value); }

std::string bytes_text(std::int64_t bytes) {
  if (bytes < 1024) return fmt::format("{} B", bytes);
  double number = static_cast<double>(bytes);
  std::size_t unit = 0;
  // 1023.95 would be printed as 1024.0
  for (; number >= 1023.95 && unit < 4; ++unit) number /= 1024;
  return fmt::format("{:.1f} {}", number, (const char*[]){"B", "KiB", "MiB", "GiB", "TiB"}[unit]);
}

}  // namespace fusejit::ir
