// Element-wise rows floor ... clamp (ops.md §4).
#include <cmath>
#include <limits>

#include "ir/ops/eval.h"
#include "ir/ops/rows.h"

namespace fusejit::ir {
namespace {

using namespace rows;
using namespace expr;

template <class T, class F>
T rounded(T x, F f) {
  if constexpr (Real<T>)
    return f(x);
  else
    return x;
}

// Half to even, whatever the rounding mode of the caller.
template <class T>
T nearest_even(T x) {
  const T down = std::floor(x);
  const T rest = x - down;
  if (rest < T(0.5)) return std::copysign(down, x);
  if (rest > T(0.5)) return std::copysign(down + 1, x);
  if (rest != T(0.5)) return x;  // inf and NaN
  return std::copysign(std::fmod(down, T(2)) == 0 ? down : down + 1, x);
}

constexpr double kInfinity = std::numeric_limits<double>::infinity();

// A bound of clamp in the type of x; ints know -inf and inf as "no bound".
template <class T>
T bound(const Attr& attr) {
  if constexpr (Real<T>)
    return static_cast<T>(attr.number);
  else if (attr.number == -std::numeric_limits<double>::infinity())
    return std::numeric_limits<T>::min();
  else if (attr.number == std::numeric_limits<double>::infinity())
    return std::numeric_limits<T>::max();
  else
    return static_cast<T>(attr.in(DType::i64)->i64());
}

template <class T>
T clamped(T x, T low, T high) {
  const T raised = x < low ? low : x;
  return raised > high ? high : raised;
}

Type infer_clamp(const InferContext& c) {
  const Type type = c.type(0);
  if (type.dtype == DType::boolean) c.fail("x must be int or float, it is bool");
  if (is_float(type.dtype)) return {type.dtype, type.shape};
  for (std::size_t i = 0; i < 2; ++i) {
    const Attr& attr = c.attrs[i];
    const bool bounds_nothing = attr.number == (i == 0 ? -kInfinity : kInfinity);
    const bool fits =
        std::isinf(attr.number) ? bounds_nothing || !is_narrow_int(type.dtype) : attr.in(type.dtype).has_value();
    if (!fits) c.fail("min and max of an int must be integers within its range, or infinite");
  }
  return {type.dtype, type.shape};
}

// A bound as an operand for values of `dtype`; nothing where it bounds nothing.
std::optional<Operand> bound_operand(const Attr& attr, DType dtype, double nothing) {
  if (attr.number == nothing) return std::nullopt;
  if (is_float(dtype)) return Operand(attr.number);
  if (!std::isinf(attr.number)) return Operand(attr.in(DType::i64)->i64());
  return Operand(end_of_range(dtype, attr.number > 0).integer());
}

constexpr AttrDef kClamp[] = {{"min", AttrKind::number, "-inf"}, {"max", AttrKind::number, "inf"}};

constexpr OpDef kRows[] = {
    {.op = Op::floor,
     .name = "floor",
     .dtype_rule = DTypeRule::numeric,
     .no_gradient = true,
     .eval =
         [](Args a, const Attrs&) {
           return unary(a, [](auto x) { return rounded(x, [](auto v) { return std::floor(v); }); });
         },
     .llvm = {.floating = "llvm.floor", .signed_int = "same", .unsigned_int = "same"},
     .cuda = {.floating = "floor{f}($0)", .integral = "$0"},
     .meaning = "rounded down; ints stay"},
    {.op = Op::ceil,
     .name = "ceil",
     .dtype_rule = DTypeRule::numeric,
     .no_gradient = true,
     .eval =
         [](Args a, const Attrs&) {
           return unary(a, [](auto x) { return rounded(x, [](auto v) { return std::ceil(v); }); });
         },
     .llvm = {.floating = "llvm.ceil", .signed_int = "same", .unsigned_int = "same"},
     .cuda = {.floating = "ceil{f}($0)", .integral = "$0"},
     .meaning = "rounded up; ints stay"},
    {.op = Op::trunc,
     .name = "trunc",
     .dtype_rule = DTypeRule::numeric,
     .no_gradient = true,
     .eval =
         [](Args a, const Attrs&) {
           return unary(a, [](auto x) { return rounded(x, [](auto v) { return std::trunc(v); }); });
         },
     .llvm = {.floating = "llvm.trunc", .signed_int = "same", .unsigned_int = "same"},
     .cuda = {.floating = "trunc{f}($0)", .integral = "$0"},
     .meaning = "rounded toward zero; ints stay"},
    {.op = Op::round,
     .name = "round",
     .dtype_rule = DTypeRule::numeric,
     .no_gradient = true,
     .eval =
         [](Args a, const Attrs&) {
           return unary(a, [](auto x) { return rounded(x, [](auto v) { return nearest_even(v); }); });
         },
     .llvm = {.floating = "llvm.roundeven", .signed_int = "same", .unsigned_int = "same"},
     .cuda = {.floating = "rint{f}($0)", .integral = "$0"},
     .meaning = "rounded to the nearest integer, half to even; ints stay"},
    {.op = Op::clamp,
     .name = "clamp",
     .attrs = kClamp,
     .dtype_rule = DTypeRule::numeric,
     .infer = infer_clamp,
     .grad =
         [](const GradContext& g) {
           Value dx = g.dy;
           const double infinity = std::numeric_limits<double>::infinity();
           // Written so that a NaN in x passes nothing.
           if (g.y->attrs[0].number != -infinity)
             dx = apply(Op::where, {apply(Op::ge, {g.x(0), g.y->attrs[0].number}), dx, 0.0});
           if (g.y->attrs[1].number != infinity)
             dx = apply(Op::where, {apply(Op::le, {g.x(0), g.y->attrs[1].number}), dx, 0.0});
           return Grads{dx};
         },
     .expand =
         [](std::span<const Operand> o, const Attrs& attrs, const Type& type) {
           Value x = o[0].value;
           const double infinity = std::numeric_limits<double>::infinity();
           if (const auto low = bound_operand(attrs[0], type.dtype, -infinity)) x = apply(Op::maximum, {x, *low});
           if (const auto high = bound_operand(attrs[1], type.dtype, infinity)) x = apply(Op::minimum, {x, *high});
           return x;
         },
     .eval =
         [](Args a, const Attrs& attrs) {
           return unary(a,
                        [&](auto x) { return clamped(x, bound<decltype(x)>(attrs[0]), bound<decltype(x)>(attrs[1])); });
         },
     .meaning = "min(max(x, min), max); NaN stays"},
};
static_assert(rows_fill(kRows, kRounding), "a row is missing or out of order");
static_assert(all_well_formed(kRows), "a row lacks a field of its family");

}  // namespace

std::span<const OpDef> rounding_rows() { return kRows; }

}  // namespace fusejit::ir
