// Evaluates a fragment on a block of arguments, column by column, by the host's own arithmetic: an evaluator that
// shares no code with the kernel interpreter and the emitter. Used by tests and by bench/fragment_ulp.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <span>
#include <type_traits>
#include <vector>

#include "ir/base/check.h"
#include "ir/kernel/math.h"

namespace fusejit::test {

// n elements of one value: T is float, double, std::int32_t, std::int64_t, std::uint32_t, std::uint64_t, or bool as
// bytes.
class Column {
 public:
  explicit Column(std::size_t n) : words_(n) {}
  template <class T>
  T* as() {
    return reinterpret_cast<T*>(words_.data());
  }

 private:
  std::vector<std::uint64_t> words_;
};

class FragmentEvaluator {
 public:
  FragmentEvaluator(const ir::Fragment& fragment, std::size_t block) : fragment_(fragment), n_(block) {
    columns_.reserve(fragment.values.size() + 8);
    for (std::size_t i = 0; i < fragment.values.size(); ++i) columns_.emplace_back(block);
    for (const ir::DefStmt& def : fragment.definitions) steps_.push_back(plan(def));
  }

  // Column of argument i, to be filled before run().
  template <class T>
  T* argument(int i) {
    return columns_[static_cast<std::size_t>(i)].template as<T>();
  }
  template <class T>
  const T* result() {
    return columns_[static_cast<std::size_t>(fragment_.result.value)].template as<T>();
  }

  void run() {
    for (const Step& step : steps_) evaluate(step);
  }

 private:
  struct Step {
    ir::Op op;
    DType from;  // dtype of the operands
    DType to;
    Column* out;
    Column* in[3] = {};
    unsigned amount = 0;  // of a shift
  };

  Step plan(const ir::DefStmt& def) {
    Step step{def.op, f32, type(def.results[0]), &columns_[static_cast<std::size_t>(def.results[0])]};
    step.from = def.op == ir::Op::where ? step.to : type_of(def.args[0]);
    if (def.op == ir::Op::where) FJ_ASSERT(type_of(def.args[0]) == boolean, "where needs a bool");
    for (std::size_t i = 0; i < def.args.size(); ++i) {
      const ir::Arg& arg = def.args[i];
      const bool is_condition = def.op == ir::Op::where && i == 0;
      FJ_ASSERT(is_condition || type_of(arg) == step.from, "operands of {} differ in dtype", ir::name(def.op));
      step.in[i] = arg.is_literal() ? constant(arg.literal) : &columns_[static_cast<std::size_t>(arg.value)];
    }
    if (def.op == ir::Op::shl || def.op == ir::Op::shr) step.amount = static_cast<unsigned>(def.args[1].literal.bits);
    return step;
  }

  DType type(ir::ValueId id) const { return fragment_.values[static_cast<std::size_t>(id)]; }
  DType type_of(const ir::Arg& arg) const { return arg.is_literal() ? arg.literal.dtype : type(arg.value); }

  Column* constant(ir::Scalar literal) {
    constants_.push_back(std::make_unique<Column>(n_));
    const std::int64_t size = bytes(literal.dtype);
    char* out = constants_.back()->as<char>();
    for (std::size_t i = 0; i < n_; ++i)
      std::memcpy(out + static_cast<std::int64_t>(i) * size, &literal.bits, static_cast<std::size_t>(size));
    return constants_.back().get();
  }

  template <class To, class From, class F>
  void map1(const Step& s, F f) {
    const From* __restrict a = s.in[0]->as<From>();
    To* __restrict out = s.out->as<To>();
    for (std::size_t i = 0; i < n_; ++i) out[i] = f(a[i]);
  }
  template <class To, class From, class F>
  void map2(const Step& s, F f) {
    const From* a = s.in[0]->as<From>();
    const From* b = s.in[1]->as<From>();
    To* __restrict out = s.out->as<To>();
    for (std::size_t i = 0; i < n_; ++i) out[i] = f(a[i], b[i]);
  }

  template <class T>
  void where(const Step& s) {
    const std::uint8_t* c = s.in[0]->as<std::uint8_t>();
    const T* a = s.in[1]->as<T>();
    const T* b = s.in[2]->as<T>();
    T* __restrict out = s.out->as<T>();
    for (std::size_t i = 0; i < n_; ++i) out[i] = c[i] ? a[i] : b[i];
  }

  template <class T>
  bool compare(const Step& s) {
    using B = std::uint8_t;
    switch (s.op) {
      case ir::Op::eq:
        map2<B, T>(s, [](T a, T b) -> B { return a == b; });
        return true;
      case ir::Op::ne:
        map2<B, T>(s, [](T a, T b) -> B { return a != b; });
        return true;
      case ir::Op::lt:
        map2<B, T>(s, [](T a, T b) -> B { return a < b; });
        return true;
      case ir::Op::le:
        map2<B, T>(s, [](T a, T b) -> B { return a <= b; });
        return true;
      case ir::Op::gt:
        map2<B, T>(s, [](T a, T b) -> B { return a > b; });
        return true;
      case ir::Op::ge:
        map2<B, T>(s, [](T a, T b) -> B { return a >= b; });
        return true;
      default:
        return false;
    }
  }

  template <class T>
  bool floating(const Step& s) {
    using U = std::conditional_t<sizeof(T) == 4, std::uint32_t, std::uint64_t>;
    if (compare<T>(s)) return true;
    switch (s.op) {
      case ir::Op::add:
        map2<T, T>(s, [](T a, T b) { return a + b; });
        return true;
      case ir::Op::sub:
        map2<T, T>(s, [](T a, T b) { return a - b; });
        return true;
      case ir::Op::mul:
        map2<T, T>(s, [](T a, T b) { return a * b; });
        return true;
      case ir::Op::div:
        map2<T, T>(s, [](T a, T b) { return a / b; });
        return true;
      case ir::Op::sqrt:
        map1<T, T>(s, [](T a) { return std::sqrt(a); });
        return true;
      case ir::Op::abs:
        map1<T, T>(s, [](T a) { return std::fabs(a); });
        return true;
      case ir::Op::neg:
        map1<T, T>(s, [](T a) { return -a; });
        return true;
      case ir::Op::floor:
        map1<T, T>(s, [](T a) { return std::floor(a); });
        return true;
      case ir::Op::ceil:
        map1<T, T>(s, [](T a) { return std::ceil(a); });
        return true;
      case ir::Op::trunc:
        map1<T, T>(s, [](T a) { return std::trunc(a); });
        return true;
      case ir::Op::round:
        map1<T, T>(s, [](T a) { return std::nearbyint(a); });
        return true;
      case ir::Op::bits:
        map1<U, T>(s, [](T a) { return std::bit_cast<U>(a); });
        return true;
      case ir::Op::fma: {
        const T *a = s.in[0]->as<T>(), *b = s.in[1]->as<T>(), *c = s.in[2]->as<T>();
        T* __restrict out = s.out->as<T>();
        for (std::size_t i = 0; i < n_; ++i) out[i] = std::fma(a[i], b[i], c[i]);
        return true;
      }
      case ir::Op::cast:
        if (s.to == f32) return map1<float, T>(s, [](T a) { return static_cast<float>(a); }), true;
        if (s.to == f64) return map1<double, T>(s, [](T a) { return static_cast<double>(a); }), true;
        return false;
      default:
        return false;
    }
  }

  template <class T>
  bool integer(const Step& s) {
    using U = std::make_unsigned_t<T>;
    using F = std::conditional_t<sizeof(T) == 4, float, double>;
    if (compare<T>(s)) return true;
    const unsigned n = s.amount;
    switch (s.op) {
      case ir::Op::add:
        map2<U, U>(s, [](U a, U b) { return a + b; });
        return true;
      case ir::Op::sub:
        map2<U, U>(s, [](U a, U b) { return a - b; });
        return true;
      case ir::Op::mul:
        map2<U, U>(s, [](U a, U b) { return a * b; });
        return true;
      case ir::Op::bitwise_and:
        map2<U, U>(s, [](U a, U b) { return a & b; });
        return true;
      case ir::Op::bitwise_or:
        map2<U, U>(s, [](U a, U b) { return a | b; });
        return true;
      case ir::Op::bitwise_xor:
        map2<U, U>(s, [](U a, U b) { return a ^ b; });
        return true;
      case ir::Op::shl:
        map1<U, U>(s, [n](U a) { return a << n; });
        return true;
      case ir::Op::shr:
        map1<U, U>(s, [n](U a) { return a >> n; });
        return true;
      case ir::Op::from_bits:
        map1<F, U>(s, [](U a) { return std::bit_cast<F>(a); });
        return true;
      case ir::Op::cast:
        return cast_integer<T>(s);
      default:
        return false;
    }
  }

  template <class T>
  bool cast_integer(const Step& s) {
    switch (s.to) {
      case DType::f32:
        map1<float, T>(s, [](T a) { return static_cast<float>(a); });
        return true;
      case DType::f64:
        map1<double, T>(s, [](T a) { return static_cast<double>(a); });
        return true;
      case DType::i32:
        map1<std::int32_t, T>(s, [](T a) { return static_cast<std::int32_t>(a); });
        return true;
      case DType::u32:
        map1<std::uint32_t, T>(s, [](T a) { return static_cast<std::uint32_t>(a); });
        return true;
      case DType::i64:
        map1<std::int64_t, T>(s, [](T a) { return static_cast<std::int64_t>(a); });
        return true;
      case DType::u64:
        map1<std::uint64_t, T>(s, [](T a) { return static_cast<std::uint64_t>(a); });
        return true;
      default:
        return false;
    }
  }

  bool logical(const Step& s) {
    using B = std::uint8_t;
    switch (s.op) {
      case ir::Op::logical_and:
        map2<B, B>(s, [](B a, B b) -> B { return a & b; });
        return true;
      case ir::Op::logical_or:
        map2<B, B>(s, [](B a, B b) -> B { return a | b; });
        return true;
      case ir::Op::logical_xor:
        map2<B, B>(s, [](B a, B b) -> B { return a ^ b; });
        return true;
      case ir::Op::logical_not:
        map1<B, B>(s, [](B a) -> B { return !a; });
        return true;
      default:
        return false;
    }
  }

  void evaluate(const Step& s) {
    const auto done = [&] {
      switch (s.from) {
        case DType::f32:
          return s.op == ir::Op::where ? (where<float>(s), true) : floating<float>(s);
        case DType::f64:
          return s.op == ir::Op::where ? (where<double>(s), true) : floating<double>(s);
        case DType::i32:
          return s.op == ir::Op::where ? (where<std::int32_t>(s), true) : integer<std::int32_t>(s);
        case DType::u32:
          return s.op == ir::Op::where ? (where<std::uint32_t>(s), true) : integer<std::uint32_t>(s);
        case DType::i64:
          return s.op == ir::Op::where ? (where<std::int64_t>(s), true) : integer<std::int64_t>(s);
        case DType::u64:
          return s.op == ir::Op::where ? (where<std::uint64_t>(s), true) : integer<std::uint64_t>(s);
        case DType::boolean:
          return s.op == ir::Op::where ? (where<std::uint8_t>(s), true) : logical(s);
        default:
          return false;
      }
    };
    FJ_ASSERT(done(), "a fragment may not use {} on {}", ir::name(s.op), name(s.from));
  }

  const ir::Fragment& fragment_;
  std::size_t n_;
  std::vector<Column> columns_;
  std::vector<std::unique_ptr<Column>> constants_;
  std::vector<Step> steps_;
};

}  // namespace fusejit::test
