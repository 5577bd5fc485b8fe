// What the `eval` and `grad` lambdas of element-wise rows are written with. Arguments come in the compute type; ints
// are handed on as they are, and the wrap_* functions keep their arithmetic defined.
#pragma once

#include <cmath>
#include <concepts>
#include <span>
#include <type_traits>
#include <vector>

#include "ir/base/check.h"
#include "ir/node.h"
#include "ir/passes/grad.h"

namespace fusejit::ir::rows {

using Args = std::span<const Scalar>;
using Grads = std::vector<Value>;

template <class T>
concept Real = std::is_floating_point_v<T>;
template <class T>
concept Whole = std::is_integral_v<T> && !std::is_same_v<T, bool>;

template <class T>
T get(const Scalar& s) {
  if constexpr (std::is_same_v<T, float>)
    return s.f32();
  else if constexpr (std::is_same_v<T, double>)
    return s.f64();
  else if constexpr (std::is_same_v<T, bool>)
    return s.boolean();
  else
    return static_cast<T>(s.bits);
}

// f<T>(arguments of type T) for the dtype of the first argument. `f` takes one, two or three of them.
template <class F, std::size_t... I>
Scalar call(Args a, F f, std::index_sequence<I...>) {
  switch (a[0].dtype) {
    case DType::f32:
      return Scalar::of(f(get<float>(a[I])...));
    case DType::f64:
      return Scalar::of(f(get<double>(a[I])...));
    case DType::i32:
      return Scalar::of(f(get<std::int32_t>(a[I])...));
    case DType::i64:
      return Scalar::of(f(get<std::int64_t>(a[I])...));
    case DType::u32:
      return Scalar::of(f(get<std::uint32_t>(a[I])...));
    case DType::u64:
      return Scalar::of(f(get<std::uint64_t>(a[I])...));
    case DType::boolean:
    case DType::b1:
      return Scalar::of(f(get<bool>(a[I])...));
    default:
      break;
  }
  throw InternalError("an element-wise op was evaluated in a storage type");
}
template <class F>
Scalar unary(Args a, F f) {
  return call(a, f, std::index_sequence<0>());
}
template <class F>
Scalar binary(Args a, F f) {
  return call(a, f, std::index_sequence<0, 1>());
}

// A function of floats only, by the f64 library function, rounded once: the oracle of fragments and CUDA's functions.
template <class F>
Scalar function(Args a, F f) {
  FJ_ASSERT(a[0].dtype == DType::f32 || a[0].dtype == DType::f64, "a function was evaluated on {}", name(a[0].dtype));
  if (a[0].dtype == DType::f64) return Scalar::of(static_cast<double>(f(a[0].f64())));
  return Scalar::of(static_cast<float>(f(static_cast<double>(a[0].f32()))));
}

template <class T>
using Unsigned = std::make_unsigned_t<T>;
template <class T>
T wrap_add(T a, T b) {
  if constexpr (Whole<T>)
    return static_cast<T>(static_cast<Unsigned<T>>(a) + static_cast<Unsigned<T>>(b));
  else
    return static_cast<T>(a + b);
}
template <class T>
T wrap_sub(T a, T b) {
  if constexpr (Whole<T>)
    return static_cast<T>(static_cast<Unsigned<T>>(a) - static_cast<Unsigned<T>>(b));
  else
    return static_cast<T>(a - b);
}
template <class T>
T wrap_mul(T a, T b) {
  if constexpr (Whole<T>)
    return static_cast<T>(static_cast<Unsigned<T>>(a) * static_cast<Unsigned<T>>(b));
  else
    return static_cast<T>(a * b);
}

// Gradient rules build ops.
inline Value apply(Op op, std::vector<Operand> operands) { return build(op, std::move(operands)); }

}  // namespace fusejit::ir::rows
