// Number: a host scalar in an expression: `x * 0.5`, `i + 1`. Whole-number types stay exact whole numbers, so that
// integer tensors keep their dtype. UserError for an unsigned number of 2^63 or more.
#pragma once

#include <concepts>
#include <cstdint>
#include <string>
#include <type_traits>

#include "fusejit/error.h"

namespace fusejit {

struct Number {
  double real = 0;
  std::int64_t integer = 0;  // exact, where is_integer
  bool is_integer = false;

  template <std::floating_point T>
  Number(T value) : real(static_cast<double>(value)) {}
  template <std::integral T>
  Number(T value) : real(static_cast<double>(value)), integer(static_cast<std::int64_t>(value)), is_integer(true) {
    if constexpr (std::is_unsigned_v<T> && sizeof(T) >= sizeof(std::int64_t)) {
      if (integer < 0) throw UserError("the number " + std::to_string(value) + " does not fit i64");
    }
  }
};

}  // namespace fusejit
