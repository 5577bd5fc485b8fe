// Number: a host scalar in an expression: `x * 0.5`, `i + 1`. Whole-number types stay exact whole numbers, so that
// integer tensors keep their dtype.
#pragma once

#include <concepts>
#include <cstdint>

namespace fusejit {

struct Number {
  double real = 0;
  std::int64_t integer = 0;  // exact, where is_integer
  bool is_integer = false;

  template <std::floating_point T>
  Number(T value) : real(static_cast<double>(value)) {}
  template <std::integral T>
  Number(T value) : real(static_cast<double>(value)), integer(static_cast<std::int64_t>(value)), is_integer(true) {}
};

}  // namespace fusejit
