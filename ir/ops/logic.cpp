// Element-wise rows eq ... detach (ops.md §4): comparison, logic, bits, choice, conversion.
#include <cmath>
#include <limits>

#include "ir/infer.h"
#include "ir/ops/eval.h"
#include "ir/ops/fragments.h"
#include "ir/ops/rows.h"

namespace fusejit::ir {
namespace {

using namespace rows;
using namespace expr;

constexpr double kInfinity = std::numeric_limits<double>::infinity();

bool truth(const Scalar& s) { return cast(s, DType::boolean).boolean(); }

template <class T, class F>
T bitwise(T x, T y, F f) {
  if constexpr (Real<T>)
    throw InternalError("a bitwise op was evaluated on a float");
  else
    return static_cast<T>(f(x, y));
}

// Logical ops take any dtype; kernels know them on bools.
Value as_bools(Op op, std::span<const Operand> operands) {
  std::vector<Operand> bools;
  bool changed = false;
  for (const Operand& o : operands) {
    const bool is_bool = !o.is_number() && o.value.type().dtype == DType::boolean;
    if (o.is_number())
      bools.emplace_back(o.number != 0 ? 1 : 0), changed |= o.number != bools.back().number;
    else if (is_bool)
      bools.push_back(o);
    else
      bools.emplace_back(apply(Op::ne, {o, 0})), changed = true;
  }
  return changed ? apply(op, bools) : Value();
}

// The same truth for every element of x.
Value everywhere(const Value& x, bool truth) {
  const Value is = apply(Op::eq, {x, x});
  return truth ? is : apply(Op::logical_not, {is});
}

Type infer_where(const InferContext& c) {
  if (!c.operands[0].is_number() && c.type(0).dtype != DType::boolean)
    c.fail(fmt::format("the condition must be bool, it is {}", name(c.type(0).dtype)));
  if (c.operands[0].is_number() && c.operands[0].integer != 0 && c.operands[0].integer != 1)
    c.fail("a number as condition must be 0 or 1");
  const std::optional<DType> dtype = number_dtype(op_def(c.op), c.operands);
  if (!dtype) c.fail("a or b must be a value");
  Type type = infer_elementwise(c);
  type.dtype = *dtype;
  return type;
}

Type infer_cast(const InferContext& c) { return {c.attrs.dtype("dtype"), c.type(0).shape}; }

constexpr std::string_view kAB[] = {"a", "b"};
constexpr std::string_view kCAB[] = {"c", "a", "b"};
constexpr AttrDef kCast[] = {{"dtype", AttrKind::dtype}};

constexpr OpDef kRows[] = {
    {.op = Op::eq,
     .name = "eq",
     .min_operands = 2,
     .max_operands = 2,
     .operand_names = kAB,
     .dtype_rule = DTypeRule::to_bool,
     .numbers_allowed = true,
     .no_gradient = true,
     .eval = [](Args a, const Attrs&) { return binary(a, [](auto x, auto y) { return x == y; }); },
     .commutative = true,
     .comparison = true,
     .llvm = {.floating = "fcmp oeq", .signed_int = "icmp eq", .unsigned_int = "icmp eq", .boolean = "icmp eq"},
     .cuda = {.floating = "$0 == $1", .integral = "$0 == $1"},
     .meaning = "a == b"},
    {.op = Op::ne,
     .name = "ne",
     .min_operands = 2,
     .max_operands = 2,
     .operand_names = kAB,
     .dtype_rule = DTypeRule::to_bool,
     .numbers_allowed = true,
     .no_gradient = true,
     .eval = [](Args a, const Attrs&) { return binary(a, [](auto x, auto y) { return x != y; }); },
     .commutative = true,
     .comparison = true,
     .llvm = {.floating = "fcmp une", .signed_int = "icmp ne", .unsigned_int = "icmp ne", .boolean = "icmp ne"},
     .cuda = {.floating = "$0 != $1", .integral = "$0 != $1"},
     .meaning = "a != b"},
    {.op = Op::lt,
     .name = "lt",
     .min_operands = 2,
     .max_operands = 2,
     .operand_names = kAB,
     .dtype_rule = DTypeRule::to_bool,
     .numbers_allowed = true,
     .no_gradient = true,
     .eval = [](Args a, const Attrs&) { return binary(a, [](auto x, auto y) { return x < y; }); },
     .comparison = true,
     .llvm = {.floating = "fcmp olt", .signed_int = "icmp slt", .unsigned_int = "icmp ult", .boolean = "icmp ult"},
     .cuda = {.floating = "$0 < $1", .integral = "$0 < $1"},
     .meaning = "a < b"},
    {.op = Op::le,
     .name = "le",
     .min_operands = 2,
     .max_operands = 2,
     .operand_names = kAB,
     .dtype_rule = DTypeRule::to_bool,
     .numbers_allowed = true,
     .no_gradient = true,
     .eval = [](Args a, const Attrs&) { return binary(a, [](auto x, auto y) { return x <= y; }); },
     .comparison = true,
     .llvm = {.floating = "fcmp ole", .signed_int = "icmp sle", .unsigned_int = "icmp ule", .boolean = "icmp ule"},
     .cuda = {.floating = "$0 <= $1", .integral = "$0 <= $1"},
     .meaning = "a <= b"},
    {.op = Op::gt,
     .name = "gt",
     .min_operands = 2,
     .max_operands = 2,
     .operand_names = kAB,
     .dtype_rule = DTypeRule::to_bool,
     .numbers_allowed = true,
     .no_gradient = true,
     .eval = [](Args a, const Attrs&) { return binary(a, [](auto x, auto y) { return x > y; }); },
     .comparison = true,
     .llvm = {.floating = "fcmp ogt", .signed_int = "icmp sgt", .unsigned_int = "icmp ugt", .boolean = "icmp ugt"},
     .cuda = {.floating = "$0 > $1", .integral = "$0 > $1"},
     .meaning = "a > b"},
    {.op = Op::ge,
     .name = "ge",
     .min_operands = 2,
     .max_operands = 2,
     .operand_names = kAB,
     .dtype_rule = DTypeRule::to_bool,
     .numbers_allowed = true,
     .no_gradient = true,
     .eval = [](Args a, const Attrs&) { return binary(a, [](auto x, auto y) { return x >= y; }); },
     .comparison = true,
     .llvm = {.floating = "fcmp oge", .signed_int = "icmp sge", .unsigned_int = "icmp uge", .boolean = "icmp uge"},
     .cuda = {.floating = "$0 >= $1", .integral = "$0 >= $1"},
     .meaning = "a >= b"},
    {.op = Op::logical_and,
     .name = "logical_and",
     .min_operands = 2,
     .max_operands = 2,
     .operand_names = kAB,
     .dtype_rule = DTypeRule::to_bool,
     .numbers_allowed = true,
     .keeps_dtype = 3,
     .no_gradient = true,
     .expand = [](std::span<const Operand> o, const Attrs&, const Type&) { return as_bools(Op::logical_and, o); },
     .eval = [](Args a, const Attrs&) { return Scalar::of(truth(a[0]) && truth(a[1])); },
     .commutative = true,
     .llvm = {.boolean = "and"},
     .cuda = {.integral = "$0 && $1"},
     .meaning = "and of nonzero, where NaN counts as true"},
    {.op = Op::logical_or,
     .name = "logical_or",
     .min_operands = 2,
     .max_operands = 2,
     .operand_names = kAB,
     .dtype_rule = DTypeRule::to_bool,
     .numbers_allowed = true,
     .keeps_dtype = 3,
     .no_gradient = true,
     .expand = [](std::span<const Operand> o, const Attrs&, const Type&) { return as_bools(Op::logical_or, o); },
     .eval = [](Args a, const Attrs&) { return Scalar::of(truth(a[0]) || truth(a[1])); },
     .commutative = true,
     .llvm = {.boolean = "or"},
     .cuda = {.integral = "$0 || $1"},
     .meaning = "or of nonzero, where NaN counts as true"},
    {.op = Op::logical_xor,
     .name = "logical_xor",
     .min_operands = 2,
     .max_operands = 2,
     .operand_names = kAB,
     .dtype_rule = DTypeRule::to_bool,
     .numbers_allowed = true,
     .keeps_dtype = 3,
     .no_gradient = true,
     .expand = [](std::span<const Operand> o, const Attrs&, const Type&) { return as_bools(Op::logical_xor, o); },
     .eval = [](Args a, const Attrs&) { return Scalar::of(truth(a[0]) != truth(a[1])); },
     .commutative = true,
     .llvm = {.boolean = "xor"},
     .cuda = {.integral = "!$0 != !$1"},
     .meaning = "exclusive or of nonzero, where NaN counts as true"},
    {.op = Op::logical_not,
     .name = "logical_not",
     .dtype_rule = DTypeRule::to_bool,
     .no_gradient = true,
     .expand =
         [](std::span<const Operand> o, const Attrs&, const Type&) {
           return o[0].value.type().dtype == DType::boolean ? Value() : apply(Op::eq, {o[0], 0});
         },
     .eval = [](Args a, const Attrs&) { return Scalar::of(!truth(a[0])); },
     .llvm = {.boolean = "not"},
     .cuda = {.integral = "!$0"},
     .meaning = "true where x is zero"},
    {.op = Op::bitwise_and,
     .name = "bitwise_and",
     .min_operands = 2,
     .max_operands = 2,
     .operand_names = kAB,
     .dtype_rule = DTypeRule::integral,
     .numbers_allowed = true,
     .no_gradient = true,
     .eval =
         [](Args a, const Attrs&) {
           return binary(a, [](auto x, auto y) { return bitwise(x, y, [](auto v, auto w) { return v & w; }); });
         },
     .commutative = true,
     .llvm = {.signed_int = "and", .unsigned_int = "and", .boolean = "and"},
     .cuda = {.integral = "$0 & $1"},
     .meaning = "a & b, bit by bit"},
    {.op = Op::bitwise_or,
     .name = "bitwise_or",
     .min_operands = 2,
     .max_operands = 2,
     .operand_names = kAB,
     .dtype_rule = DTypeRule::integral,
     .numbers_allowed = true,
     .no_gradient = true,
     .eval =
         [](Args a, const Attrs&) {
           return binary(a, [](auto x, auto y) { return bitwise(x, y, [](auto v, auto w) { return v | w; }); });
         },
     .commutative = true,
     .llvm = {.signed_int = "or", .unsigned_int = "or", .boolean = "or"},
     .cuda = {.integral = "$0 | $1"},
     .meaning = "a | b, bit by bit"},
    {.op = Op::bitwise_xor,
     .name = "bitwise_xor",
     .min_operands = 2,
     .max_operands = 2,
     .operand_names = kAB,
     .dtype_rule = DTypeRule::integral,
     .numbers_allowed = true,
     .no_gradient = true,
     .eval =
         [](Args a, const Attrs&) {
           return binary(a, [](auto x, auto y) { return bitwise(x, y, [](auto v, auto w) { return v ^ w; }); });
         },
     .commutative = true,
     .llvm = {.signed_int = "xor", .unsigned_int = "xor", .boolean = "xor"},
     .cuda = {.integral = "$0 ^ $1"},
     .meaning = "a ^ b, bit by bit"},
    {.op = Op::bitwise_not,
     .name = "bitwise_not",
     .dtype_rule = DTypeRule::integral,
     .no_gradient = true,
     .expand = [](std::span<const Operand> o, const Attrs&,
                  const Type& type) { return type.dtype == DType::boolean ? apply(Op::logical_not, {o[0]}) : Value(); },
     .eval =
         [](Args a, const Attrs&) {
           return unary(a, [](auto x) {
             if constexpr (std::is_same_v<decltype(x), bool>)
               return !x;
             else
               return bitwise(x, x, [](auto v, auto) { return ~v; });
           });
         },
     .llvm = {.signed_int = "not", .unsigned_int = "not", .boolean = "not"},
     .cuda = {.integral = "fj_not($0)"},
     .meaning = "every bit flipped; of a bool: not"},
    {.op = Op::isnan,
     .name = "isnan",
     .dtype_rule = DTypeRule::to_bool,
     .no_gradient = true,
     .expand =
         [](std::span<const Operand> o, const Attrs&, const Type&) {
           const Value& x = o[0].value;
           return is_float(x.type().dtype) ? apply(Op::ne, {x, x}) : everywhere(x, false);
         },
     .eval =
         [](Args a, const Attrs&) {
           return unary(a, [](auto x) {
             if constexpr (Real<decltype(x)>)
               return static_cast<bool>(x != x);
             else
               return static_cast<void>(x), false;
           });
         },
     .cuda = {.floating = "fj_isnan($0)"},
     .fragment_f32 = fragments::kIsnanF32,
     .fragment_f64 = fragments::kIsnanF64,
     .meaning = "x is NaN"},
    {.op = Op::isinf,
     .name = "isinf",
     .dtype_rule = DTypeRule::to_bool,
     .no_gradient = true,
     .expand =
         [](std::span<const Operand> o, const Attrs&, const Type&) {
           const Value& x = o[0].value;
           return is_float(x.type().dtype) ? apply(Op::eq, {apply(Op::abs, {x}), kInfinity}) : everywhere(x, false);
         },
     .eval =
         [](Args a, const Attrs&) {
           return unary(a, [](auto x) {
             if constexpr (Real<decltype(x)>)
               return static_cast<bool>(std::isinf(x));
             else
               return static_cast<void>(x), false;
           });
         },
     .cuda = {.floating = "fj_isinf($0)"},
     .fragment_f32 = fragments::kIsinfF32,
     .fragment_f64 = fragments::kIsinfF64,
     .meaning = "x is inf or -inf"},
    {.op = Op::isfinite,
     .name = "isfinite",
     .dtype_rule = DTypeRule::to_bool,
     .no_gradient = true,
     .expand =
         [](std::span<const Operand> o, const Attrs&, const Type&) {
           const Value& x = o[0].value;
           return is_float(x.type().dtype) ? apply(Op::lt, {apply(Op::abs, {x}), kInfinity}) : everywhere(x, true);
         },
     .eval =
         [](Args a, const Attrs&) {
           return unary(a, [](auto x) {
             if constexpr (Real<decltype(x)>)
               return static_cast<bool>(std::isfinite(x));
             else
               return true;
           });
         },
     .cuda = {.floating = "fj_isfinite($0)"},
     .fragment_f32 = fragments::kIsfiniteF32,
     .fragment_f64 = fragments::kIsfiniteF64,
     .meaning = "x is neither NaN nor infinite"},
    {.op = Op::where,
     .name = "where",
     .min_operands = 3,
     .max_operands = 3,
     .operand_names = kCAB,
     .infer = infer_where,
     .numbers_allowed = true,
     .keeps_dtype = 1,
     .grad =
         [](const GradContext& g) {
           Grads out(3);
           if (g.wants(1)) out[1] = apply(Op::where, {g.operand(0), g.dy, 0.0});
           if (g.wants(2)) out[2] = apply(Op::where, {g.operand(0), 0.0, g.dy});
           return out;
         },
     .eval = [](Args a, const Attrs&) { return truth(a[0]) ? a[1] : a[2]; },
     .copies_bits = true,
     .llvm = {.floating = "select", .signed_int = "select", .unsigned_int = "select", .boolean = "select"},
     .cuda = {.floating = "$0 ? $1 : $2", .integral = "$0 ? $1 : $2"},
     .kernel_types = "bTT>T",
     .meaning = "a where c is true, else b; the other side does not leak"},
    {.op = Op::cast,
     .name = "cast",
     .attrs = kCast,
     .infer = infer_cast,
     .keeps_dtype = 1,
     .grad =
         [](const GradContext& g) {
           const DType from = g.x(0).type().dtype;
           if (!is_float(from) || !is_float(g.y.type().dtype)) return Grads{Value()};
           return Grads{build(Op::cast, {g.dy}, {{"dtype", from}})};
         },
     .eval = [](Args a, const Attrs& attrs) { return cast(a[0], attrs[0].dtype); },
     .copies_bits = true,
     .llvm = {.floating = "fj.cast", .signed_int = "fj.cast", .unsigned_int = "fj.cast", .boolean = "fj.cast"},
     .cuda = {.floating = "fj_cast<{T}>($0)", .integral = "fj_cast<{T}>($0)"},
     .kernel_types = "*>*",
     .meaning = "x in another dtype, rounded once; float to int toward zero, saturating, NaN to 0"},
    {.op = Op::detach,
     .name = "detach",
     .dtype_rule = DTypeRule::any,
     .no_gradient = true,
     .expand = [](std::span<const Operand> o, const Attrs&, const Type&) { return o[0].value; },
     .eval = [](Args a, const Attrs&) { return a[0]; },
     .copies_bits = true,
     .llvm = {.floating = "same", .signed_int = "same", .unsigned_int = "same", .boolean = "same"},
     .cuda = {.floating = "$0", .integral = "$0"},
     .meaning = "x; blocks the gradient"},
};
static_assert(rows_fill(kRows, kLogic), "a row is missing or out of order");
static_assert(all_well_formed(kRows), "a row lacks a field of its family");

}  // namespace

std::span<const OpDef> logic_rows() { return kRows; }

}  // namespace fusejit::ir
