// Arithmetic, comparisons and conversions, element by element.
#include <functional>

#include "frontend/onnx/call.h"
#include "frontend/onnx/data_types.h"
#include "ir/base/check.h"

namespace fusejit::onnx {
namespace {

using Tensors = std::vector<Tensor>;
using OfOne = Tensor (*)(const Tensor&);
using OfTwo = Tensor (*)(const Tensor&, const Tensor&);

Tensor negated(const Tensor& x) { return -x; }

template <OfOne f>
Tensors unary(const Call& c) {
  return {f(c.tensor(0))};
}

struct Equal {
  Tensor operator()(const Tensor& a, const auto& b) const { return eq(a, b); }
};
struct Power {
  Tensor operator()(const Tensor& a, const auto& b) const { return pow(a, b); }
};

// A constant of one element is a number of the op, not a tensor of the trace.
template <class F>
Tensors with_numbers(const Call& c) {
  if (const std::optional<Number> b = c.number_beside(1, 0)) return {F()(c.tensor(0), *b)};
  return {F()(c.tensor(0), c.tensor(1))};
}
template <OfTwo f>
Tensors binary(const Call& c) {
  return {f(c.tensor(0), c.tensor(1))};
}

template <OfTwo f>
Tensors of_all(const Call& c) {
  const Tensors all = c.tensors();
  Tensor y = all[0];
  for (std::size_t i = 1; i < all.size(); ++i) y = f(y, all[i]);
  return {y};
}

Tensors mean_of_all(const Call& c) { return {of_all<add>(c)[0] / static_cast<double>(c.inputs())}; }

// Integers: toward zero.
Tensors divided(const Call& c) {
  const Tensor a = c.tensor(0), b = c.tensor(1);
  if (is_float(a.dtype())) return with_numbers<std::divides<>>(c);
  const Tensor q = floor_divide(a, b);
  const Tensor is_above = logical_and(ne(a - q * b, 0), logical_xor(a < 0, b < 0));
  return {where(is_above, q + 1, q)};
}

// In the dtype of the base.
Tensors power(const Call& c) {
  const Tensor a = c.tensor(0), b = c.tensor(1);
  if (a.dtype() == b.dtype()) return with_numbers<Power>(c);
  if (is_float(a.dtype())) return {pow(a, b.to(a.dtype()))};
  if (is_int(b.dtype())) return {pow(a, b).to(a.dtype())};
  return {pow(a.to(f64), b.to(f64)).to(a.dtype())};
}

Tensors modulo(const Call& c) {
  const Tensor a = c.tensor(0), b = c.tensor(1);
  if (c.integer("fmod", 0) != 0) return {fmod(a, b)};
  FJ_CHECK(is_int(a.dtype()), "floats need fmod=1 (a: {})", a.type().str());
  return {remainder(a, b)};
}

Tensors clipped(const Call& c) {
  const Tensor x = c.tensor(0);
  const double infinity = std::numeric_limits<double>::infinity();
  const Number low = c.number_at(1, -infinity), high = c.number_at(2, infinity);
  if (is_float(x.dtype()) && low.real == 0 && high.real == 6) return {relu6(x)};
  return {clamp(x, low, high)};
}

DType dtype_named_by(std::int64_t data_type) {
  const std::optional<DType> dtype = dtype_of(data_type);
  if (!dtype) throw UnsupportedError(fmt::format("no tensor has the dtype {}", data_type_name(data_type)));
  return *dtype;
}

Tensors converted(const Call& c) {
  FJ_CHECK(c.has("to"), "the attribute 'to' is missing");
  return {c.tensor(0).to(dtype_named_by(c.integer("to", 0)))};
}
Tensors converted_like(const Call& c) { return {c.tensor(0).to(c.tensor(1).dtype())}; }

Tensors chosen(const Call& c) { return {where(c.tensor(0), c.tensor(1), c.tensor(2))}; }

template <OfOne f>
Row unary_row(const char* op, int since = 13) {
  return {.op = op, .since = since, .mean = unary<f>};
}
Row two(const char* op, std::vector<Tensor> (*mean)(const Call&), int since = 13) {
  return {.op = op, .since = since, .least = 2, .most = 2, .mean = mean};
}
Row many(const char* op, std::vector<Tensor> (*mean)(const Call&)) {
  return {.op = op, .least = 1, .most = INT_MAX, .mean = mean};
}

}  // namespace

std::vector<Row> elementwise_rows() {
  return {
      unary_row<abs>("Abs"),
      unary_row<ceil>("Ceil"),
      unary_row<cos>("Cos"),
      unary_row<erf>("Erf"),
      unary_row<exp>("Exp"),
      unary_row<floor>("Floor"),
      unary_row<isnan>("IsNaN"),
      unary_row<log>("Log"),
      unary_row<logical_not>("Not"),
      unary_row<negated>("Neg"),
      unary_row<reciprocal>("Reciprocal"),
      unary_row<round>("Round"),
      unary_row<sign>("Sign"),
      unary_row<sin>("Sin"),
      unary_row<sqrt>("Sqrt"),
      unary_row<bitwise_not>("BitwiseNot", 18),
      {.op = "IsInf",
       .attributes = {{"detect_negative", Kind::integer, "1"}, {"detect_positive", Kind::integer, "1"}},
       .mean = unary<isinf>},
      two("Add", with_numbers<std::plus<>>),
      two("And", binary<logical_and>),
      two("BitwiseAnd", binary<bitwise_and>, 18),
      two("BitwiseOr", binary<bitwise_or>, 18),
      two("BitwiseXor", binary<bitwise_xor>, 18),
      two("Div", divided),
      two("Equal", with_numbers<Equal>),
      two("Greater", with_numbers<std::greater<>>),
      two("GreaterOrEqual", with_numbers<std::greater_equal<>>),
      two("Less", with_numbers<std::less<>>),
      two("LessOrEqual", with_numbers<std::less_equal<>>),
      two("Mul", with_numbers<std::multiplies<>>),
      two("Or", binary<logical_or>),
      two("Pow", power),
      two("Sub", with_numbers<std::minus<>>),
      two("Xor", binary<logical_xor>),
      {.op = "Mod", .least = 2, .most = 2, .attributes = {{"fmod", Kind::integer, "0|1"}}, .mean = modulo},
      many("Max", of_all<maximum>),
      many("Mean", mean_of_all),
      many("Min", of_all<minimum>),
      many("Sum", of_all<add>),
      {.op = "Clip", .most = 3, .numbers = {1, 2}, .mean = clipped},
      {.op = "Where", .least = 3, .most = 3, .mean = chosen},
      {.op = "Cast",
       .attributes = {{"to", Kind::integer}, {"saturate", Kind::integer}},  // of 8-bit floats
       .mean = converted},
      {.op = "CastLike",
       .since = 15,
       .least = 2,
       .most = 2,
       .attributes = {{"saturate", Kind::integer}},
       .mean = converted_like},
      {.op = "Identity", .mean = [](const Call& c) { return Tensors{c.tensor(0)}; }},
  };
}

}  // namespace fusejit::onnx
