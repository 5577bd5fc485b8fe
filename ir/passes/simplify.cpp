// Algebra that changes no bit of any result (NaN payloads apart), one rule a line with its equation. Laws of a rule: it
// makes the graph smaller or its ops cheaper, never trades one form for another and back, and stays within the region.
//
// x + 0 is no rule (-0 + 0 is +0), nor is x * 0 for floats, nor !(a < b) (NaN).
#include <bit>
#include <cmath>
#include <optional>

#include "ir/base/scalar.h"
#include "ir/infer.h"
#include "ir/passes/made_by.h"
#include "ir/passes/passes.h"
#include "ir/rewrite.h"

namespace fusejit::ir {
namespace {

// A node that may become another; its operands are simplified already.
struct Site {
  const Node& node;
  const std::vector<Operand>& operands;

  const Operand& operator[](std::size_t i) const { return operands[i]; }
  bool is_float_result() const { return is_float(node.type.dtype); }
};

const Operand& inner(const Operand& operand, std::size_t i = 0) { return operand.value->operands[i]; }
bool same(const Operand& a, const Operand& b) { return a.value && a.value == b.value; }
bool is_number(const Operand& operand, double value) {
  return operand.is_number() && std::bit_cast<std::uint64_t>(operand.number) == std::bit_cast<std::uint64_t>(value);
}

// `operand` in place of the node, if it is just that value.
Value itself(const Site& s, const Operand& operand) {
  return operand.value && operand.value.type() == s.node.type ? operand.value : Value();
}

// Another op in place of the node, if the type comes out the same.
Value made(const Site& s, Op op, std::vector<Operand> operands, std::vector<AttrInit> attrs = {}) {
  return build_as(s.node.type, op, std::move(operands), std::move(attrs), s.node.region);
}

Value unchanged_view(const Site& s) { return itself(s, s[0]); }

Value reshape_of_reshape(const Site& s) {
  return made_by(s[0], Op::reshape) ? made(s, Op::reshape, {inner(s[0])}, {{"shape", s.node.type.shape.dims()}})
                                    : Value();
}

Value identity_permute(const Site& s) {
  const auto dims = s.node.attrs.ints("dims");
  for (std::size_t d = 0; d < dims.size(); ++d)
    if (dims[d] != static_cast<std::int64_t>(d)) return {};
  return itself(s, s[0]);
}

Value permute_of_permute(const Site& s) {
  if (!made_by(s[0], Op::permute)) return {};
  const auto outer = s.node.attrs.ints("dims"), first = s[0].value->attrs.ints("dims");
  std::vector<std::int64_t> dims;
  for (std::int64_t d : outer) dims.push_back(first[static_cast<std::size_t>(d)]);
  return made(s, Op::permute, {inner(s[0])}, {{"dims", std::span<const std::int64_t>(dims)}});
}

Value expand_of_expand(const Site& s) {
  return made_by(s[0], Op::expand) ? made(s, Op::expand, {inner(s[0])}, {{"shape", s.node.type.shape.dims()}})
                                   : Value();
}

Value flip_of_flip(const Site& s) {
  return made_by(s[0], Op::flip) && s[0].value->attrs == s.node.attrs ? itself(s, inner(s[0])) : Value();
}

// Every value of `from` is one of `to`.
bool widens(DType from, DType to) {
  if (from == to || from == DType::boolean) return true;
  if (to == DType::f64) return from != DType::i64;
  if (to == DType::f32) return from == DType::f16 || from == DType::bf16 || is_narrow_int(from);
  if (is_float(to)) return from == DType::i8 || from == DType::u8;  // 8 significant bits
  return is_int(from) && is_int(to) && promote(from, to) == to;
}

Value cast_of_cast(const Site& s) {
  if (!made_by(s[0], Op::cast)) return {};
  const Operand& x = inner(s[0]);
  const DType from = x.value.type().dtype, to = s.node.type.dtype;
  if (!widens(from, s[0].value.type().dtype)) return {};
  // An int that does not fit another wraps, but saturates on the way through a float.
  if (is_float(s[0].value.type().dtype) && is_int(from) && is_int(to) && !widens(from, to)) return {};
  const Value value = itself(s, x);
  return value ? value : made(s, Op::cast, {x}, {{"dtype", s.node.type.dtype}});
}

// Exact if the reciprocal is a normal number: a power of two in the middle of the range.
Value divide_by_power_of_two(const Site& s) {
  if (!s[1].is_number() || !s[0].value) return {};
  int exponent = 0;
  const double c = s[1].number;
  const int limit = compute_type(s.node.type.dtype) == DType::f32 ? 120 : 1000;
  if (c == 0 || !std::isfinite(c) || std::fabs(std::frexp(c, &exponent)) != 0.5 || std::abs(exponent) > limit)
    return {};
  return made(s, Op::mul, {s[0], 1 / c});
}

Value twice(const Site& s, Op op) { return made_by(s[0], op) ? itself(s, inner(s[0])) : Value(); }

Value extremum_again(const Site& s) {
  if (same(s[0], s[1])) return itself(s, s[0]);
  const bool again = made_by(s[0], s.node.op) && s[1].is_number() && inner(s[0], 1).is_number() &&
                     is_number(s[1], inner(s[0], 1).number) && s[1].integer == inner(s[0], 1).integer;
  return again ? itself(s, s[0]) : Value();
}

Value not_of_comparison(const Site& s, Op of, Op becomes) {
  return made_by(s[0], of) ? made(s, becomes, s[0].value->operands) : Value();
}

// The one value that `full` puts everywhere, as it is stored.
std::optional<Scalar> uniform(const Operand& operand) {
  if (!made_by(operand, Op::full)) return std::nullopt;
  return operand.value->attrs.number_in("value", operand.value.type().dtype);
}

Value full_of(const Site& s, Scalar value) {
  const Type& type = s.node.type;
  const Scalar stored = cast(value, type.dtype);
  const AttrInit attr =
      is_float(type.dtype) ? AttrInit("value", stored.as_double()) : AttrInit("value", cast(stored, DType::i64).i64());
  return made(s, Op::full, {}, {{"shape", type.shape.dims()}, attr, {"dtype", type.dtype}});
}

// An element-wise op on equal values everywhere is one value everywhere. Functions are left alone: their bits are those
// of the engine's own expansion.
Value fold(const Site& s) {
  if (op_def(s.node.op).ulp > 0) return {};
  std::vector<Scalar> arguments;
  for (std::size_t i = 0; i < s.operands.size(); ++i) {
    const DType dtype = compute_type(operand_dtype(s.node, i));
    if (s[i].is_number()) {
      arguments.push_back(cast(s[i].is_integer ? Scalar::of(s[i].integer) : Scalar::of(s[i].number), dtype));
    } else if (const auto value = uniform(s[i])) {
      arguments.push_back(cast(*value, dtype));
    } else {
      return {};
    }
  }
  return full_of(s, op_def(s.node.op).eval(arguments, s.node.attrs));
}

// A value that is the same everywhere becomes a number operand, where the other operands alone give the type.
Value number_for_full(const Site& s) {
  std::vector<Operand> operands = s.operands;
  bool changed = false;
  for (std::size_t i = 0; i < operands.size(); ++i) {
    const auto value = uniform(operands[i]);
    if (!value) continue;
    const DType dtype = operands[i].value.type().dtype;
    if (is_float(dtype) && !std::isfinite(value->as_double())) continue;
    const Operand kept = operands[i];
    operands[i] = is_float(dtype) ? Operand(value->as_double()) : Operand(cast(*value, DType::i64).i64());
    bool some = false;
    for (std::size_t k = 0; k < operands.size(); ++k)
      some |= !operands[k].is_number() && !(op_def(s.node.op).keeps_dtype >> k & 1);
    if (some)
      changed = true;
    else
      operands[i] = kept;
  }
  if (!changed) return {};
  try {
    return made(s, s.node.op, std::move(operands));
  } catch (const UserError&) {
    return {};  // the number would not fit what the others promote to
  }
}

Value reduce_nothing(const Site& s) {
  const Shape& x = s[0].value.type().shape;
  if (x.elements() != s.node.type.elements() || s[0].value.type().dtype != s.node.type.dtype) return {};
  const Value value = itself(s, s[0]);
  return value ? value : made(s, Op::reshape, {s[0]}, {{"shape", s.node.type.shape.dims()}});
}

struct Rule {
  Op op;
  const char* equation;
  Value (*apply)(const Site& s);
};

constexpr Rule kRules[] = {
    {Op::add, "x + -0.0 = x",
     [](const Site& s) { return s.is_float_result() && is_number(s[1], -0.0) ? itself(s, s[0]) : Value(); }},
    {Op::add, "x + 0 = x (ints)",
     [](const Site& s) { return !s.is_float_result() && is_number(s[1], 0) ? itself(s, s[0]) : Value(); }},
    {Op::sub, "x - 0 = x", [](const Site& s) { return is_number(s[1], 0) ? itself(s, s[0]) : Value(); }},
    {Op::mul, "x * 1 = x", [](const Site& s) { return is_number(s[1], 1) ? itself(s, s[0]) : Value(); }},
    {Op::mul, "1 * x = x", [](const Site& s) { return is_number(s[0], 1) ? itself(s, s[1]) : Value(); }},
    {Op::mul, "x * -1 = -x", [](const Site& s) { return is_number(s[1], -1) ? made(s, Op::neg, {s[0]}) : Value(); }},
    {Op::div, "x / 1 = x", [](const Site& s) { return is_number(s[1], 1) ? itself(s, s[0]) : Value(); }},
    {Op::div, "x / 2^k = x * 2^-k", divide_by_power_of_two},
    {Op::pow, "x ^ 1 = x", [](const Site& s) { return is_number(s[1], 1) ? itself(s, s[0]) : Value(); }},
    {Op::maximum, "max(x, x) = x, max(max(x, c), c) = max(x, c)", extremum_again},
    {Op::minimum, "min(x, x) = x, min(min(x, c), c) = min(x, c)", extremum_again},
    {Op::neg, "-(-x) = x", [](const Site& s) { return twice(s, Op::neg); }},
    {Op::abs, "||x|| = |x|", [](const Site& s) { return made_by(s[0], Op::abs) ? itself(s, s[0]) : Value(); }},
    {Op::abs, "|-x| = |x| (not u8)",
     [](const Site& s) {
       const bool has_sign = s.node.type.dtype != DType::u8;
       return has_sign && made_by(s[0], Op::neg) ? made(s, Op::abs, {inner(s[0])}) : Value();
     }},
    {Op::logical_not, "!!b = b (bool)", [](const Site& s) { return twice(s, Op::logical_not); }},
    {Op::logical_not, "!(a = b) = a != b", [](const Site& s) { return not_of_comparison(s, Op::eq, Op::ne); }},
    {Op::logical_not, "!(a != b) = a = b", [](const Site& s) { return not_of_comparison(s, Op::ne, Op::eq); }},
    {Op::where, "c ? x : x = x", [](const Site& s) { return same(s[1], s[2]) ? itself(s, s[1]) : Value(); }},
    {Op::where, "1 ? a : b = a", [](const Site& s) { return is_number(s[0], 1) ? itself(s, s[1]) : Value(); }},
    {Op::where, "0 ? a : b = b", [](const Site& s) { return is_number(s[0], 0) ? itself(s, s[2]) : Value(); }},
    {Op::cast, "x in its own dtype = x", [](const Site& s) { return itself(s, s[0]); }},
    {Op::cast, "cast(widening cast(x)) = cast(x)", cast_of_cast},
    {Op::cast, "cast(full) = full",
     [](const Site& s) {
       const auto v = uniform(s[0]);
       return v ? full_of(s, *v) : Value();
     }},
    {Op::reshape, "reshape to the same shape = x", unchanged_view},
    {Op::reshape, "reshape(reshape(x)) = reshape(x)", reshape_of_reshape},
    {Op::reshape, "reshape(full) = full",
     [](const Site& s) {
       const auto v = uniform(s[0]);
       return v ? full_of(s, *v) : Value();
     }},
    {Op::permute, "permute in order = x", identity_permute},
    {Op::permute, "permute(permute(x)) = permute(x)", permute_of_permute},
    {Op::squeeze, "squeeze of nothing = x", unchanged_view},
    {Op::expand, "expand to the same shape = x", unchanged_view},
    {Op::expand, "expand(expand(x)) = expand(x)", expand_of_expand},
    {Op::expand, "expand(full) = full",
     [](const Site& s) {
       const auto v = uniform(s[0]);
       return v ? full_of(s, *v) : Value();
     }},
    {Op::slice, "slice of everything = x", unchanged_view},
    {Op::unslice, "unslice of everything = x", unchanged_view},
    {Op::pad, "pad by nothing = x", unchanged_view},
    {Op::concat, "concat(x) = x", [](const Site& s) { return s.operands.size() == 1 ? itself(s, s[0]) : Value(); }},
    {Op::flip, "flip of no dim = x",
     [](const Site& s) { return s.node.attrs.ints("dims").empty() ? itself(s, s[0]) : Value(); }},
    {Op::flip, "flip(flip(x)) = x", flip_of_flip},
    {Op::sum, "sum over dims of size 1 = reshape", reduce_nothing},
    {Op::mean, "mean over dims of size 1 = reshape", reduce_nothing},
    {Op::prod, "prod over dims of size 1 = reshape", reduce_nothing},
    {Op::amax, "amax over dims of size 1 = reshape", reduce_nothing},
    {Op::amin, "amin over dims of size 1 = reshape", reduce_nothing},
};

Value simplified(const Site& s) {
  for (const Rule& rule : kRules)
    if (rule.op == s.node.op)
      if (Value value = rule.apply(s)) return value;
  if (op_def(s.node.op).family != Family::elementwise || !op_def(s.node.op).attrs.empty()) return {};
  if (Value value = fold(s)) return value;
  return number_for_full(s);
}

// The node and then what it became, until no rule holds.
Value simplify_node(const Node& node, const std::vector<Operand>& operands) {
  constexpr int kMostSteps = 16;
  Value value = simplified({node, operands});
  for (int step = 0; value && value->op != Op::parameter && step < kMostSteps; ++step) {
    Value next = simplified({*value, value->operands});
    if (!next) break;
    value = std::move(next);
  }
  return value;
}

}  // namespace

Graph simplify(const Graph& graph) { return rewrite(graph, simplify_node); }

}  // namespace fusejit::ir
