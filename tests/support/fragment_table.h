// The functions that have fragments, with references: f32 against the double library, f64 against long double.
#pragma once

#include <cmath>
#include <span>
#include <string_view>

#include "ir/op.h"
#include "ir/ops/fragments.h"

namespace fusejit::test {

struct FunctionCase {
  ir::Op op;
  int arguments;
  std::string_view f32_text;
  std::string_view f64_text;
  long double (*reference)(long double a, long double b);
  double (*fast_reference)(double a);  // unary: exact enough for f32
};

inline long double sign_of(long double x) { return x > 0 ? 1 : x < 0 ? -1 : x; }
template <class T>
T sigmoid_of(T x) {
  return 1 / (1 + std::exp(-x));
}
// Python's remainder: the sign of b.
inline long double remainder_of(long double a, long double b) {
  const long double r = std::fmod(a, b);
  return r != 0 && std::signbit(r) != std::signbit(b) ? r + b : r;
}

// floor(a/b) of the exact quotient; a/0 for b = 0, NaN for infinite a.
inline long double floor_divide_of(long double a, long double b) {
  if (b == 0) return a / b;
  if (std::isinf(b) && std::isfinite(a)) return a != 0 && std::signbit(a) != std::signbit(b) ? -1 : 0;
  return std::nearbyint((a - remainder_of(a, b)) / b);
}

inline std::span<const FunctionCase> function_cases() {
  namespace f = ir::fragments;
  using ir::Op;
  using L = long double;
  static const FunctionCase cases[] = {
      {Op::sign, 1, f::kSignF32, f::kSignF64, [](L a, L) { return sign_of(a); },
       [](double a) { return double(sign_of(a)); }},
      {Op::reciprocal, 1, f::kReciprocalF32, f::kReciprocalF64, [](L a, L) { return 1 / a; },
       [](double a) { return 1 / a; }},
      {Op::rsqrt, 1, f::kRsqrtF32, f::kRsqrtF64, [](L a, L) { return 1 / std::sqrt(a); },
       [](double a) { return 1 / std::sqrt(a); }},
      {Op::exp, 1, f::kExpF32, f::kExpF64, [](L a, L) { return std::exp(a); }, [](double a) { return std::exp(a); }},
      {Op::exp2, 1, f::kExp2F32, f::kExp2F64, [](L a, L) { return std::exp2(a); },
       [](double a) { return std::exp2(a); }},
      {Op::expm1, 1, f::kExpm1F32, f::kExpm1F64, [](L a, L) { return std::expm1(a); },
       [](double a) { return std::expm1(a); }},
      {Op::log, 1, f::kLogF32, f::kLogF64, [](L a, L) { return std::log(a); }, [](double a) { return std::log(a); }},
      {Op::log2, 1, f::kLog2F32, f::kLog2F64, [](L a, L) { return std::log2(a); },
       [](double a) { return std::log2(a); }},
      {Op::log10, 1, f::kLog10F32, f::kLog10F64, [](L a, L) { return std::log10(a); },
       [](double a) { return std::log10(a); }},
      {Op::log1p, 1, f::kLog1pF32, f::kLog1pF64, [](L a, L) { return std::log1p(a); },
       [](double a) { return std::log1p(a); }},
      {Op::tanh, 1, f::kTanhF32, f::kTanhF64, [](L a, L) { return std::tanh(a); },
       [](double a) { return std::tanh(a); }},
      {Op::sigmoid, 1, f::kSigmoidF32, f::kSigmoidF64, [](L a, L) { return sigmoid_of(a); },
       [](double a) { return sigmoid_of(a); }},
      {Op::erf, 1, f::kErfF32, f::kErfF64, [](L a, L) { return std::erf(a); }, [](double a) { return std::erf(a); }},
      {Op::erfc, 1, f::kErfcF32, f::kErfcF64, [](L a, L) { return std::erfc(a); },
       [](double a) { return std::erfc(a); }},
      {Op::sin, 1, f::kSinF32, f::kSinF64, [](L a, L) { return std::sin(a); }, [](double a) { return std::sin(a); }},
      {Op::cos, 1, f::kCosF32, f::kCosF64, [](L a, L) { return std::cos(a); }, [](double a) { return std::cos(a); }},
      {Op::pow, 2, f::kPowF32, f::kPowF64, [](L a, L b) { return std::pow(a, b); }, nullptr},
      {Op::fmod, 2, f::kFmodF32, f::kFmodF64, [](L a, L b) { return std::fmod(a, b); }, nullptr},
      {Op::remainder, 2, f::kRemainderF32, f::kRemainderF64, [](L a, L b) { return remainder_of(a, b); }, nullptr},
      {Op::floor_divide, 2, f::kFloorDivideF32, f::kFloorDivideF64, [](L a, L b) { return floor_divide_of(a, b); },
       nullptr},
  };
  return cases;
}

// |got - want| in units of the last place of `want` rounded to T; NaN must meet NaN, an infinite answer an infinite
// one.
template <class T, class Wide>
double ulp_error(T got, Wide want) {
  if (std::isnan(want) || std::isnan(got)) return std::isnan(want) && std::isnan(got) ? 0 : HUGE_VAL;
  const T rounded = static_cast<T>(want);
  if (got == rounded) return static_cast<double>(std::isinf(got) ? 0 : std::fabs(got - want) == 0 ? 0 : 0.5);
  if (std::isinf(rounded) && std::isinf(got)) return HUGE_VAL;  // other sign
  const int lowest = std::numeric_limits<T>::min_exponent - std::numeric_limits<T>::digits;
  int exponent = lowest;
  if (want != 0)
    exponent = std::max(lowest, std::ilogb(std::isinf(want) ? static_cast<Wide>(std::numeric_limits<T>::max()) : want) -
                                    std::numeric_limits<T>::digits + 1);
  if (std::isinf(got)) {  // as if the exponent range went on
    const Wide top = std::ldexp(Wide(1), std::numeric_limits<T>::max_exponent);
    return static_cast<double>(std::ldexp(std::fabs(std::copysign(top, static_cast<Wide>(got)) - want), -exponent));
  }
  if (std::isinf(want)) return HUGE_VAL;
  return static_cast<double>(std::ldexp(std::fabs(static_cast<Wide>(got) - want), -exponent));
}

}  // namespace fusejit::test
