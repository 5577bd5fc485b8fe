// Numbers as text, read exactly and without the locale. A number is [-] (decimal | hex float) | [-] inf | nan
// (ops.md §1).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace fusejit::ir {

// Digits only, within u64; otherwise nothing.
std::optional<std::uint64_t> read_decimal_integer(std::string_view digits);

// The nearest f64 or f32, inf on overflow and ±0 on underflow; nothing if the text is not a number.
std::optional<double> read_double(std::string_view text);
std::optional<float> read_float(std::string_view text);

// -1, 0 or 1 as the number that `text` (finite, decimal or hex) writes is below, equal to or above `value` (finite).
int compare_with(std::string_view text, double value);

// The shortest text that reads back to the same value; integers below 2^53 (2^24) are written as such, -0 is "-0.0".
std::string shortest_text(double value);
std::string shortest_text(float value);

// "768 B", "12.4 KiB", "49.1 MiB", "11.7 GiB"
std::string bytes_text(std::int64_t bytes);

}  // namespace fusejit::ir
