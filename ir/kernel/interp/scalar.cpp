#include "ir/kernel/interp/scalar.h"

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <type_traits>

#include "ir/base/check.h"

namespace fusejit::ir {
namespace {

template <class T>
T get(Word w) {
  if constexpr (std::is_same_v<T, bool>) {
    return w != 0;
  } else if constexpr (sizeof(T) == 4) {
    return std::bit_cast<T>(static_cast<std::uint32_t>(w));
  } else {
    return std::bit_cast<T>(w);
  }
}
template <class T>
Word put(T v) {
  if constexpr (std::is_same_v<T, bool>) {
    return v ? 1 : 0;
  } else if constexpr (sizeof(T) == 4) {
    return std::bit_cast<std::uint32_t>(v);
  } else {
    return std::bit_cast<std::uint64_t>(v);
  }
}

// Integers wrap: arithmetic in the unsigned type.
template <class T, class F>
T wrapped(T a, T b, F f) {
  if constexpr (std::is_integral_v<T>) {
    using U = std::make_unsigned_t<T>;
    return static_cast<T>(f(static_cast<U>(a), static_cast<U>(b)));
  } else {
    return f(a, b);
  }
}

struct Add {
  template <class T>
  static T of(T a, T b) {
    return wrapped(a, b, [](auto x, auto y) { return x + y; });
  }
};
struct Sub {
  template <class T>
  static T of(T a, T b) {
    return wrapped(a, b, [](auto x, auto y) { return x - y; });
  }
};
struct Mul {
  template <class T>
  static T of(T a, T b) {
    return wrapped(a, b, [](auto x, auto y) { return x * y; });
  }
};
// NaN wins; of equals (+0, -0) the first.
struct Maximum {
  template <class T>
  static T of(T a, T b) {
    return b != b || b > a ? b : a;
  }
};
struct Minimum {
  template <class T>
  static T of(T a, T b) {
    return b != b || b < a ? b : a;
  }
};
template <class F, class T>
Word binary(Word a, Word b, Word) {
  return put<T>(F::template of<T>(get<T>(a), get<T>(b)));
}

struct Eq {
  template <class T>
  static bool of(T a, T b) {
    return a == b;
  }
};
struct Ne {
  template <class T>
  static bool of(T a, T b) {
    return a != b;
  }
};
struct Lt {
  template <class T>
  static bool of(T a, T b) {
    return a < b;
  }
};
struct Le {
  template <class T>
  static bool of(T a, T b) {
    return a <= b;
  }
};
struct Gt {
  template <class T>
  static bool of(T a, T b) {
    return a > b;
  }
};
struct Ge {
  template <class T>
  static bool of(T a, T b) {
    return a >= b;
  }
};
template <class F, class T>
Word compare(Word a, Word b, Word) {
  return put<bool>(F::template of<T>(get<T>(a), get<T>(b)));
}

template <class T>
Word divide(Word a, Word b, Word) {
  return put<T>(get<T>(a) / get<T>(b));
}
template <class T>
Word fused(Word a, Word b, Word c) {
  return put<T>(std::fma(get<T>(a), get<T>(b), get<T>(c)));
}
template <class T>
Word root(Word a, Word, Word) {
  return put<T>(std::sqrt(get<T>(a)));
}

Word select(Word c, Word a, Word b) { return c != 0 ? a : b; }
Word both(Word a, Word b, Word) { return a & b; }
Word either(Word a, Word b, Word) { return a | b; }
Word negation(Word a, Word, Word) { return a ^ 1; }
Word copy(Word a, Word, Word) { return a; }
Word low32(Word a, Word, Word) { return a & 0xffffffffu; }
template <class T>
Word extended(Word a, Word, Word) {
  return put<std::int32_t>(static_cast<T>(a));
}
template <class T>
Word low(Word a, Word, Word) {
  return static_cast<T>(a);
}

struct Entry {
  Op op;
  DType dtype;
  ScalarFn fn;
};

#define FJ_ARITHMETIC(op, F)                                                                                          \
  {op, DType::f32, binary<F, float>}, {op, DType::f64, binary<F, double>}, {op, DType::i32, binary<F, std::int32_t>}, \
      {op, DType::i64, binary<F, std::int64_t>}, {op, DType::u32, binary<F, std::uint32_t>}, {                        \
    op, DType::u64, binary<F, std::uint64_t>                                                                          \
  }
#define FJ_COMPARISON(op, F)                                                                  \
  {op, DType::f32, compare<F, float>}, {op, DType::f64, compare<F, double>},                  \
      {op, DType::i32, compare<F, std::int32_t>}, {op, DType::i64, compare<F, std::int64_t>}, \
      {op, DType::u32, compare<F, std::uint32_t>}, {                                          \
    op, DType::u64, compare<F, std::uint64_t>                                                 \
  }

// A cache of meanings, not a list of ops: an op that is missing here runs through its row.
constexpr Entry kDirect[] = {
    FJ_ARITHMETIC(Op::add, Add),
    FJ_ARITHMETIC(Op::sub, Sub),
    FJ_ARITHMETIC(Op::mul, Mul),
    FJ_ARITHMETIC(Op::maximum, Maximum),
    FJ_ARITHMETIC(Op::minimum, Minimum),
    FJ_COMPARISON(Op::eq, Eq),
    FJ_COMPARISON(Op::ne, Ne),
    FJ_COMPARISON(Op::lt, Lt),
    FJ_COMPARISON(Op::le, Le),
    FJ_COMPARISON(Op::gt, Gt),
    FJ_COMPARISON(Op::ge, Ge),
    {Op::div, DType::f32, divide<float>},
    {Op::div, DType::f64, divide<double>},
    {Op::fma, DType::f32, fused<float>},
    {Op::fma, DType::f64, fused<double>},
    {Op::sqrt, DType::f32, root<float>},
    {Op::sqrt, DType::f64, root<double>},
    {Op::where, DType::boolean, select},
    {Op::logical_and, DType::boolean, both},
    {Op::logical_or, DType::boolean, either},
    {Op::logical_not, DType::boolean, negation},
    {Op::bitwise_and, DType::u32, both},
    {Op::bitwise_and, DType::u64, both},
    {Op::bitwise_or, DType::u32, either},
    {Op::bitwise_or, DType::u64, either},
    {Op::bits, DType::f32, copy},
    {Op::bits, DType::f64, copy},
    {Op::bits, DType::f16, copy},
    {Op::bits, DType::bf16, copy},
};
#undef FJ_ARITHMETIC
#undef FJ_COMPARISON

template <class From, class To>
Word converted(Word a, Word, Word) {
  return put<To>(static_cast<To>(get<From>(a)));
}
Word from_bf16(Word a, Word, Word) { return a << 16; }
Word to_bf16(Word a, Word, Word) { return f32_to_bf16(get<float>(a)); }
Word from_f16(Word a, Word, Word) { return put<float>(f16_to_f32(static_cast<std::uint16_t>(a))); }
Word to_f16(Word a, Word, Word) { return f32_to_f16(get<float>(a)); }

template <class T>
bool takes(bool largest, const Word* a, const Word* b, bool index_before) {
  const T x = get<T>(a[0]), y = get<T>(b[0]);
  if (largest ? y > x : y < x) return true;
  if (y != y && x == x) return true;
  return (x == y || (x != x && y != y)) && index_before;
}

std::int64_t as_integer(Word w, DType dtype) {
  return dtype == DType::i32 ? get<std::int32_t>(w) : static_cast<std::int64_t>(w);
}

void combine_arg(bool largest, const DType* types, Word* a, const Word* b) {
  const bool before = types[1] == DType::u64 ? b[1] < a[1] : as_integer(b[1], types[1]) < as_integer(a[1], types[1]);
  const auto takes_it = [&] {
    switch (types[0]) {
      case DType::f32:
        return takes<float>(largest, a, b, before);
      case DType::f64:
        return takes<double>(largest, a, b, before);
      case DType::i32:
        return takes<std::int32_t>(largest, a, b, before);
      case DType::i64:
        return takes<std::int64_t>(largest, a, b, before);
      default:
        return takes<std::uint64_t>(largest, a, b, before);
    }
  };
  if (takes_it()) a[0] = b[0], a[1] = b[1];
}

template <class T>
void combine_welford(Word* a, const Word* b) {
  const T an = get<T>(a[0]), am = get<T>(a[1]), as = get<T>(a[2]);
  const T bn = get<T>(b[0]), bm = get<T>(b[1]), bs = get<T>(b[2]);
  const T n = an + bn;
  const T r = n == 0 ? T(0) : bn / n;
  const T d = bm - am;
  const T t = d * r;
  a[0] = put<T>(n), a[1] = put<T>(am + t), a[2] = put<T>((as + bs) + d * (t * an));
}

}  // namespace

ScalarFn direct_function(Op op, DType operand) {
  for (const Entry& entry : kDirect)
    if (entry.op == op && entry.dtype == operand) return entry.fn;
  return nullptr;
}

ScalarFn direct_cast(DType from, DType to) {
  using D = DType;
  if (from == to) return copy;
  if (from == D::f32 && to == D::f64) return converted<float, double>;
  if (from == D::f64 && to == D::f32) return converted<double, float>;
  if (from == D::i32 && to == D::f32) return converted<std::int32_t, float>;
  if (from == D::i64 && to == D::f32) return converted<std::int64_t, float>;
  if (from == D::u32 && to == D::f32) return converted<std::uint32_t, float>;
  if (from == D::i32 && to == D::i64) return converted<std::int32_t, std::int64_t>;
  if (from == D::i64 && (to == D::i32 || to == D::u32)) return low32;
  if (from == D::u64 && (to == D::i32 || to == D::u32)) return low32;
  if (from == D::u32 && (to == D::i32 || to == D::i64 || to == D::u64)) return copy;
  if (from == D::i32 && to == D::u32) return copy;
  if (from == D::u8 && to == D::i32) return copy;
  if (from == D::i8 && to == D::i32) return extended<std::int8_t>;
  if (from == D::i16 && to == D::i32) return extended<std::int16_t>;
  if (from == D::i32 && (to == D::i8 || to == D::u8)) return low<std::uint8_t>;
  if (from == D::i32 && to == D::i16) return low<std::uint16_t>;
  if (from == D::bf16 && to == D::f32) return from_bf16;
  if (from == D::f32 && to == D::bf16) return to_bf16;
  if (from == D::f16 && to == D::f32) return from_f16;
  if (from == D::f32 && to == D::f16) return to_f16;
  return nullptr;
}

ScalarFn combiner_function(Combiner combiner, DType dtype) {
  if (components(combiner) != 1) return nullptr;
  const Op op = combining_op(combiner);
  const ScalarFn fn = direct_function(op, dtype);
  FJ_ASSERT(fn, "V6: a reduce {} over {}", name(op), name(dtype));
  return fn;
}

void combine(Combiner combiner, const DType* types, Word* into, const Word* from) {
  if (combiner == Combiner::welford) {
    return types[0] == DType::f32 ? combine_welford<float>(into, from) : combine_welford<double>(into, from);
  }
  combine_arg(combiner == Combiner::argmax, types, into, from);
}

}  // namespace fusejit::ir
