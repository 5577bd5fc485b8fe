// Element-wise rows add ... rsqrt (ops.md §4).
#include <cmath>
#include <limits>

#include "ir/ops/eval.h"
#include "ir/ops/fragments.h"
#include "ir/ops/rows.h"

namespace fusejit::ir {
namespace {

using namespace rows;
using namespace expr;

// C++ % and / without its traps: by 0 gives 0, MIN by -1 gives 0 and MIN.
template <class T>
T whole_rem(T a, T b) {
  if (b == 0) return 0;
  if constexpr (std::is_signed_v<T>)
    return b == -1 ? T(0) : static_cast<T>(a % b);
  else
    return static_cast<T>(a % b);
}

template <class T>
T fmod_of(T a, T b) {
  if constexpr (Real<T>)
    return std::fmod(a, b);
  else
    return whole_rem(a, b);
}

// r = fmod(a, b), and one b more where the signs differ.
template <class T>
T remainder_of(T a, T b) {
  const T r = fmod_of(a, b);
  if constexpr (std::is_unsigned_v<T>)
    return r;
  else
    return r != 0 && (r < 0) != (b < 0) ? wrap_add(r, b) : r;
}

// Python's // for floats: as CPython and PyTorch compute it.
template <Real T>
T floor_quotient(T a, T b) {
  if (b == 0) return a / b;
  const T mod = std::fmod(a, b);
  T div = (a - mod) / b;
  if (mod != 0 && (b < 0) != (mod < 0)) div -= 1;
  if (div == 0) return T(0);
  const T floor = std::floor(div);
  return div - floor > T(0.5) ? floor + 1 : floor;
}
template <Whole T>
T floor_quotient(T a, T b) {
  if (b == 0) return 0;
  if constexpr (std::is_signed_v<T>) {
    if (b == -1) return wrap_sub(T(0), a);
    const T q = static_cast<T>(a / b);
    return a % b != 0 && (a < 0) != (b < 0) ? static_cast<T>(q - 1) : q;
  } else {
    return static_cast<T>(a / b);
  }
}
inline bool floor_quotient(bool a, bool b) { return a && b; }

template <class T>
T power(T a, T b) {
  if constexpr (std::is_same_v<T, float>) {
    return static_cast<float>(std::pow(static_cast<double>(a), static_cast<double>(b)));
  } else if constexpr (Real<T>) {
    return std::pow(a, b);
  } else if constexpr (Whole<T>) {
    if constexpr (std::is_signed_v<T>) {
      if (b < 0) return a == 1 ? T(1) : a == -1 ? (b % 2 ? T(-1) : T(1)) : T(0);
    }
    T result = 1;
    for (auto n = static_cast<Unsigned<T>>(b); n; n >>= 1, a = wrap_mul(a, a))
      if (n & 1) result = wrap_mul(result, a);
    return result;
  } else {
    return a || !b;
  }
}

template <class T>
T larger(T a, T b) {
  if constexpr (Real<T>)
    return b != b || b > a ? b : a;
  else
    return b > a ? b : a;
}
template <class T>
T smaller(T a, T b) {
  if constexpr (Real<T>)
    return b != b || b < a ? b : a;
  else
    return b < a ? b : a;
}

template <class T>
T sign_of(T x) {
  if constexpr (std::is_same_v<T, bool>)
    return x;
  else if constexpr (std::is_unsigned_v<T>)
    return x > 0 ? 1 : 0;
  else
    return x > 0 ? T(1) : x < 0 ? T(-1) : x;
}
template <class T>
T negated(T x) {
  if constexpr (Real<T>)
    return -x;
  else
    return wrap_sub(T(0), x);
}
template <class T>
T magnitude(T x) {
  if constexpr (Real<T>)
    return std::fabs(x);
  else if constexpr (std::is_signed_v<T>)
    return x < 0 ? wrap_sub(T(0), x) : x;
  else
    return x;
}
template <class T>
T root(T x) {
  if constexpr (Real<T>)
    return std::sqrt(x);
  else
    return x;
}
template <class T>
T quotient(T a, T b) {
  if constexpr (Real<T>)
    return a / b;
  else
    return floor_quotient(a, b);
}

// g where a won, g/2 on a tie, 0 elsewhere; NaN passes g to the operand that is NaN.
Value extremum_gradient(const GradContext& g, std::size_t i, Op wins) {
  const Operand& mine = g.operand(i);
  const Operand& other = g.operand(1 - i);
  const Value tie = apply(Op::where, {apply(Op::eq, {mine, other}), g.dy * 0.5, 0.0});
  const Value chosen = apply(Op::where, {apply(wins, {mine, other}), g.dy, tie});
  return mine.is_number() ? Value() : Value(apply(Op::where, {apply(Op::isnan, {mine}), g.dy, chosen}));
}

Grads pow_gradient(const GradContext& g) {
  const Operand& a = g.operand(0);
  const Operand& b = g.operand(1);
  Grads out(2);
  if (g.wants(0)) {
    if (b.is_number()) {
      if (b.number == 0)
        out[0] = g.dy * 0.0;
      else if (b.number == 1)
        out[0] = g.dy;
      else if (b.number == 2)
        out[0] = g.dy * (g.x(0) * 2.0);
      else
        out[0] = g.dy * (apply(Op::pow, {a, b.number - 1.0}) * b.number);
    } else {
      out[0] = apply(Op::where, {apply(Op::eq, {b, 0.0}), 0.0, g.dy * (b * apply(Op::pow, {a, b - 1.0}))});
    }
  }
  if (g.wants(1)) {
    const Value through = a.is_number() ? g.dy * (g.y * std::log(a.number)) : g.dy * (g.y * apply(Op::log, {a}));
    if (a.is_number()) {
      out[1] = a.number != 0 ? through : apply(Op::where, {apply(Op::ge, {b, 0.0}), 0.0, through});
    } else {
      const Value flat = apply(Op::logical_and, {apply(Op::eq, {a, 0.0}), apply(Op::ge, {b, 0.0})});
      out[1] = apply(Op::where, {flat, 0.0, through});
    }
  }
  return out;
}

// r = fmod(a, b) with the signs corrected: the same steps as `eval`.
Value expand_remainder(std::span<const Operand> o, const Attrs&, const Type&) {
  const Value r = apply(Op::fmod, {o[0], o[1]});
  const Value signs = apply(Op::ne, {apply(Op::lt, {r, 0}), apply(Op::lt, {o[1], 0})});
  const Value differ = apply(Op::logical_and, {apply(Op::ne, {r, 0}), signs});
  return apply(Op::where, {differ, r + o[1], r});
}
Value expand_number_divisor_remainder(std::span<const Operand> o, const Attrs& attrs, const Type& type) {
  if (!o[1].is_number()) return expand_remainder(o, attrs, type);
  const Value r = apply(Op::fmod, {o[0], o[1]});
  const Value differ = apply(o[1].number < 0 ? Op::gt : Op::lt, {r, 0});
  return apply(Op::where, {differ, r + o[1], r});
}

Value expand_floor_divide(std::span<const Operand> o, const Attrs&, const Type& type) {
  if (!is_float(type.dtype)) return {};
  const Operand& a = o[0];
  const Operand& b = o[1];
  const Value mod = apply(Op::fmod, {a, b});
  const Value exact = (a - mod) / b;
  const Value below =
      b.is_number() ? apply(Op::lt, {b.number < 0 ? -mod : mod, 0})
                    : apply(Op::logical_and,
                            {apply(Op::ne, {mod, 0}), apply(Op::ne, {apply(Op::lt, {mod, 0}), apply(Op::lt, {b, 0})})});
  const Value div = apply(Op::where, {below, exact - 1, exact});
  const Value floor = apply(Op::floor, {div});
  const Value rounded = apply(Op::where, {apply(Op::gt, {div - floor, 0.5}), floor + 1, floor});
  if (b.is_number()) return b.number == 0 ? a / b : rounded;
  return apply(Op::where, {apply(Op::eq, {b, 0}), a / b, rounded});
}

constexpr std::string_view kAB[] = {"a", "b"};

constexpr OpDef kRows[] = {
    {.op = Op::add,
     .name = "add",
     .min_operands = 2,
     .max_operands = 2,
     .operand_names = kAB,
     .dtype_rule = DTypeRule::numeric,
     .numbers_allowed = true,
     .grad =
         [](const GradContext& g) {
           return Grads{g.dy, g.dy};
         },
     .eval = [](Args a, const Attrs&) { return binary(a, [](auto x, auto y) { return wrap_add(x, y); }); },
     .commutative = true,
     .llvm = {.floating = "fadd", .signed_int = "add", .unsigned_int = "add"},
     .cuda = {.floating = "$0 + $1", .integral = "fj_add($0, $1)"},
     .meaning = "a + b; ints wrap"},
    {.op = Op::sub,
     .name = "sub",
     .min_operands = 2,
     .max_operands = 2,
     .operand_names = kAB,
     .dtype_rule = DTypeRule::numeric,
     .numbers_allowed = true,
     .grad =
         [](const GradContext& g) {
           return Grads{g.dy, g.wants(1) ? -g.dy : Value()};
         },
     .eval = [](Args a, const Attrs&) { return binary(a, [](auto x, auto y) { return wrap_sub(x, y); }); },
     .llvm = {.floating = "fsub", .signed_int = "sub", .unsigned_int = "sub"},
     .cuda = {.floating = "$0 - $1", .integral = "fj_sub($0, $1)"},
     .meaning = "a - b; ints wrap"},
    {.op = Op::mul,
     .name = "mul",
     .min_operands = 2,
     .max_operands = 2,
     .operand_names = kAB,
     .dtype_rule = DTypeRule::numeric,
     .numbers_allowed = true,
     .grad =
         [](const GradContext& g) {
           return Grads{g.wants(0) ? g.dy * g.operand(1) : Value(), g.wants(1) ? g.dy * g.operand(0) : Value()};
         },
     .eval = [](Args a, const Attrs&) { return binary(a, [](auto x, auto y) { return wrap_mul(x, y); }); },
     .commutative = true,
     .llvm = {.floating = "fmul", .signed_int = "mul", .unsigned_int = "mul"},
     .cuda = {.floating = "$0 * $1", .integral = "fj_mul($0, $1)"},
     .meaning = "a * b; ints wrap"},
    {.op = Op::div,
     .name = "div",
     .min_operands = 2,
     .max_operands = 2,
     .operand_names = kAB,
     .dtype_rule = DTypeRule::floating,
     .numbers_allowed = true,
     .grad =
         [](const GradContext& g) {
           Grads out(2);
           if (g.wants(0)) out[0] = g.dy / g.operand(1);
           if (g.wants(1)) out[1] = -(g.dy * g.operand(0)) / (g.x(1) * g.x(1));
           return out;
         },
     .eval = [](Args a, const Attrs&) { return binary(a, [](auto x, auto y) { return quotient(x, y); }); },
     .llvm = {.floating = "fdiv"},
     .cuda = {.floating = "$0 / $1"},
     .cost = 4,
     .meaning = "a / b (IEEE); ints: use floor_divide"},
    {.op = Op::floor_divide,
     .name = "floor_divide",
     .min_operands = 2,
     .max_operands = 2,
     .operand_names = kAB,
     .dtype_rule = DTypeRule::numeric,
     .numbers_allowed = true,
     .no_gradient = true,
     .expand = expand_floor_divide,
     .eval = [](Args a, const Attrs&) { return binary(a, [](auto x, auto y) { return floor_quotient(x, y); }); },
     .llvm = {.signed_int = "fj.floor_divide"},
     .cuda = {.integral = "fj_floor_divide($0, $1)"},
     .fragment_f32 = fragments::kFloorDivideF32,
     .fragment_f64 = fragments::kFloorDivideF64,
     .ulp = 1,
     .cost = 20,
     .meaning = "floor(a / b), as Python's //; an int by 0 gives 0"},
    {.op = Op::remainder,
     .name = "remainder",
     .min_operands = 2,
     .max_operands = 2,
     .operand_names = kAB,
     .dtype_rule = DTypeRule::numeric,
     .numbers_allowed = true,
     .grad =
         [](const GradContext& g) {
           Grads out{g.dy, {}};
           if (g.wants(1)) out[1] = -g.dy * apply(Op::floor, {g.operand(0) / g.operand(1)});
           return out;
         },
     .expand = expand_number_divisor_remainder,
     .eval = [](Args a, const Attrs&) { return binary(a, [](auto x, auto y) { return remainder_of(x, y); }); },
     .fragment_f32 = fragments::kRemainderF32,
     .fragment_f64 = fragments::kRemainderF64,
     .cost = 20,
     .meaning = "a modulo b with the sign of b; an int by 0 gives 0"},
    {.op = Op::fmod,
     .name = "fmod",
     .min_operands = 2,
     .max_operands = 2,
     .operand_names = kAB,
     .dtype_rule = DTypeRule::numeric,
     .numbers_allowed = true,
     .grad =
         [](const GradContext& g) {
           Grads out{g.dy, {}};
           if (g.wants(1)) out[1] = -g.dy * apply(Op::trunc, {g.operand(0) / g.operand(1)});
           return out;
         },
     .eval = [](Args a, const Attrs&) { return binary(a, [](auto x, auto y) { return fmod_of(x, y); }); },
     .llvm = {.floating = "frem", .signed_int = "fj.fmod"},
     .cuda = {.floating = "fmod{f}($0, $1)", .integral = "fj_fmod($0, $1)"},
     .fragment_f32 = fragments::kFmodF32,
     .fragment_f64 = fragments::kFmodF64,
     .cost = 20,
     .meaning = "a modulo b with the sign of a, exact; an int by 0 gives 0"},
    {.op = Op::pow,
     .name = "pow",
     .min_operands = 2,
     .max_operands = 2,
     .operand_names = kAB,
     .dtype_rule = DTypeRule::numeric,
     .numbers_allowed = true,
     .grad = pow_gradient,
     .eval = [](Args a, const Attrs&) { return binary(a, [](auto x, auto y) { return power(x, y); }); },
     .llvm = {.signed_int = "fj.pow"},
     .cuda = {.floating = "pow{f}($0, $1)", .integral = "fj_pow($0, $1)"},
     .fragment_f32 = fragments::kPowF32,
     .fragment_f64 = fragments::kPowF64,
     .ulp = 4,
     .domain_low = 0.1,
     .domain_high = 8,
     .cost = 40,
     .autocast = AutocastRule::wide,
     .meaning = "a to the power b; ints multiply modulo 2^n"},
    {.op = Op::maximum,
     .name = "maximum",
     .min_operands = 2,
     .max_operands = 2,
     .operand_names = kAB,
     .dtype_rule = DTypeRule::any,
     .numbers_allowed = true,
     .grad =
         [](const GradContext& g) {
           return Grads{g.wants(0) ? extremum_gradient(g, 0, Op::gt) : Value(),
                        g.wants(1) ? extremum_gradient(g, 1, Op::gt) : Value()};
         },
     .eval = [](Args a, const Attrs&) { return binary(a, [](auto x, auto y) { return larger(x, y); }); },
     .commutative = true,
     .llvm = {.floating = "fmax", .signed_int = "llvm.smax", .unsigned_int = "llvm.umax", .boolean = "or"},
     .cuda = {.floating = "fj_maximum($0, $1)", .integral = "fj_maximum($0, $1)"},
     .meaning = "the larger; NaN if either is NaN: b where b is NaN or b > a, else a"},
    {.op = Op::minimum,
     .name = "minimum",
     .min_operands = 2,
     .max_operands = 2,
     .operand_names = kAB,
     .dtype_rule = DTypeRule::any,
     .numbers_allowed = true,
     .grad =
         [](const GradContext& g) {
           return Grads{g.wants(0) ? extremum_gradient(g, 0, Op::lt) : Value(),
                        g.wants(1) ? extremum_gradient(g, 1, Op::lt) : Value()};
         },
     .eval = [](Args a, const Attrs&) { return binary(a, [](auto x, auto y) { return smaller(x, y); }); },
     .commutative = true,
     .llvm = {.floating = "fmin", .signed_int = "llvm.smin", .unsigned_int = "llvm.umin", .boolean = "and"},
     .cuda = {.floating = "fj_minimum($0, $1)", .integral = "fj_minimum($0, $1)"},
     .meaning = "the smaller; NaN if either is NaN: b where b is NaN or b < a, else a"},
    {.op = Op::neg,
     .name = "neg",
     .dtype_rule = DTypeRule::numeric,
     .grad = [](const GradContext& g) { return Grads{-g.dy}; },
     .eval = [](Args a, const Attrs&) { return unary(a, [](auto x) { return negated(x); }); },
     .llvm = {.floating = "fneg", .signed_int = "neg", .unsigned_int = "neg"},
     .cuda = {.floating = "-$0", .integral = "fj_negate($0)"},
     .meaning = "-x; the sign bit of floats is flipped"},
    {.op = Op::abs,
     .name = "abs",
     .dtype_rule = DTypeRule::numeric,
     .grad = [](const GradContext& g) { return Grads{g.dy * apply(Op::sign, {g.x(0)})}; },
     .eval = [](Args a, const Attrs&) { return unary(a, [](auto x) { return magnitude(x); }); },
     .llvm = {.floating = "llvm.fabs", .signed_int = "llvm.abs", .unsigned_int = "same"},
     .cuda = {.floating = "fabs{f}($0)", .integral = "fj_abs($0)"},
     .meaning = "|x|; the least int stays"},
    {.op = Op::sign,
     .name = "sign",
     .dtype_rule = DTypeRule::numeric,
     .no_gradient = true,
     .expand =
         [](std::span<const Operand> o, const Attrs&, const Type& type) {
           const bool has_sign = type.dtype != DType::u8;
           const Operand& x = o[0];
           const Operand rest = has_sign ? Operand(apply(Op::where, {apply(Op::lt, {x, 0}), -1, x})) : x;
           return apply(Op::where, {apply(Op::gt, {x, 0}), 1, rest});
         },
     .eval = [](Args a, const Attrs&) { return unary(a, [](auto x) { return sign_of(x); }); },
     .fragment_f32 = fragments::kSignF32,
     .fragment_f64 = fragments::kSignF64,
     .meaning = "-1, 0 or 1; NaN stays NaN"},
    {.op = Op::square,
     .name = "square",
     .dtype_rule = DTypeRule::numeric,
     .grad = [](const GradContext& g) { return Grads{g.dy * (g.x(0) * 2)}; },
     .eval = [](Args a, const Attrs&) { return unary(a, [](auto x) { return wrap_mul(x, x); }); },
     .llvm = {.floating = "fmul", .signed_int = "mul", .unsigned_int = "mul"},
     .cuda = {.floating = "$0 * $0", .integral = "fj_mul($0, $0)"},
     .meaning = "x * x"},
    {.op = Op::reciprocal,
     .name = "reciprocal",
     .dtype_rule = DTypeRule::floating,
     .grad = [](const GradContext& g) { return Grads{-g.dy * (g.y * g.y)}; },
     .expand = [](std::span<const Operand> o, const Attrs&, const Type&) { return 1.0 / o[0]; },
     .eval = [](Args a, const Attrs&) { return unary(a, [](auto x) { return quotient(decltype(x)(1), x); }); },
     .cuda = {.floating = "1 / $0"},
     .fragment_f32 = fragments::kReciprocalF32,
     .fragment_f64 = fragments::kReciprocalF64,
     .cost = 4,
     .autocast = AutocastRule::wide,
     .meaning = "1 / x"},
    {.op = Op::sqrt,
     .name = "sqrt",
     .dtype_rule = DTypeRule::floating,
     .grad = [](const GradContext& g) { return Grads{g.dy / (g.y * 2.0)}; },
     .eval = [](Args a, const Attrs&) { return unary(a, [](auto x) { return root(x); }); },
     .llvm = {.floating = "llvm.sqrt"},
     .cuda = {.floating = "sqrt{f}($0)"},
     .domain_low = 0,
     .cost = 8,
     .meaning = "the square root; NaN below 0"},
    {.op = Op::rsqrt,
     .name = "rsqrt",
     .dtype_rule = DTypeRule::floating,
     .grad = [](const GradContext& g) { return Grads{g.dy * (g.y * g.y * g.y) * -0.5}; },
     .expand = [](std::span<const Operand> o, const Attrs&, const Type&) { return 1.0 / apply(Op::sqrt, {o[0]}); },
     .eval = [](Args a, const Attrs&) { return unary(a, [](auto x) { return quotient(decltype(x)(1), root(x)); }); },
     .cuda = {.floating = "1 / sqrt{f}($0)"},
     .fragment_f32 = fragments::kRsqrtF32,
     .fragment_f64 = fragments::kRsqrtF64,
     .ulp = 2,
     .domain_low = 0.01,
     .cost = 12,
     .autocast = AutocastRule::wide,
     .meaning = "1 / sqrt(x)"},
};
static_assert(rows_fill(kRows, kArithmetic), "a row is missing or out of order");
static_assert(all_well_formed(kRows), "a row lacks a field of its family");

}  // namespace

std::span<const OpDef> arithmetic_rows() { return kRows; }

}  // namespace fusejit::ir
