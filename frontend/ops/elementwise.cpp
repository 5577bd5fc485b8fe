// The element-wise operations of fusejit/ops.h: each says which row it records and how its operands are converted.
#include <limits>

#include "frontend/record.h"
#include "fusejit/ops.h"
#include "ir/base/check.h"

namespace fusejit {

using ir::Op;

Tensor add(const Tensor& a, const Tensor& b) { return record_promoted(Op::add, {a, b}); }
Tensor sub(const Tensor& a, const Tensor& b) { return record_promoted(Op::sub, {a, b}); }
Tensor mul(const Tensor& a, const Tensor& b) { return record_promoted(Op::mul, {a, b}); }
Tensor div(const Tensor& a, const Tensor& b) { return record_promoted(Op::div, {a, b}); }
Tensor floor_divide(const Tensor& a, const Tensor& b) { return record_promoted(Op::floor_divide, {a, b}); }
Tensor floor_divide(const Tensor& a, Number b) { return record_promoted(Op::floor_divide, {a, b}); }
Tensor floor_divide(Number a, const Tensor& b) { return record_promoted(Op::floor_divide, {a, b}); }
Tensor remainder(const Tensor& a, const Tensor& b) { return record_promoted(Op::remainder, {a, b}); }
Tensor remainder(const Tensor& a, Number b) { return record_promoted(Op::remainder, {a, b}); }
Tensor remainder(Number a, const Tensor& b) { return record_promoted(Op::remainder, {a, b}); }
Tensor fmod(const Tensor& a, const Tensor& b) { return record_promoted(Op::fmod, {a, b}); }
Tensor fmod(const Tensor& a, Number b) { return record_promoted(Op::fmod, {a, b}); }
Tensor fmod(Number a, const Tensor& b) { return record_promoted(Op::fmod, {a, b}); }
Tensor pow(const Tensor& a, const Tensor& b) { return record_promoted(Op::pow, {a, b}); }
Tensor pow(const Tensor& a, Number b) { return record_promoted(Op::pow, {a, b}); }
Tensor pow(Number a, const Tensor& b) { return record_promoted(Op::pow, {a, b}); }
Tensor maximum(const Tensor& a, const Tensor& b) { return record_promoted(Op::maximum, {a, b}); }
Tensor maximum(const Tensor& a, Number b) { return record_promoted(Op::maximum, {a, b}); }
Tensor maximum(Number a, const Tensor& b) { return record_promoted(Op::maximum, {a, b}); }
Tensor minimum(const Tensor& a, const Tensor& b) { return record_promoted(Op::minimum, {a, b}); }
Tensor minimum(const Tensor& a, Number b) { return record_promoted(Op::minimum, {a, b}); }
Tensor minimum(Number a, const Tensor& b) { return record_promoted(Op::minimum, {a, b}); }

Tensor operator+(const Tensor& a, const Tensor& b) { return add(a, b); }
Tensor operator+(const Tensor& a, Number b) { return record_promoted(Op::add, {a, b}); }
Tensor operator+(Number a, const Tensor& b) { return record_promoted(Op::add, {a, b}); }
Tensor operator-(const Tensor& a, const Tensor& b) { return sub(a, b); }
Tensor operator-(const Tensor& a, Number b) { return record_promoted(Op::sub, {a, b}); }
Tensor operator-(Number a, const Tensor& b) { return record_promoted(Op::sub, {a, b}); }
Tensor operator*(const Tensor& a, const Tensor& b) { return mul(a, b); }
Tensor operator*(const Tensor& a, Number b) { return record_promoted(Op::mul, {a, b}); }
Tensor operator*(Number a, const Tensor& b) { return record_promoted(Op::mul, {a, b}); }
Tensor operator%(const Tensor& a, const Tensor& b) { return remainder(a, b); }
Tensor operator%(const Tensor& a, Number b) { return remainder(a, b); }
Tensor operator%(Number a, const Tensor& b) { return remainder(a, b); }
Tensor operator/(const Tensor& a, const Tensor& b) { return div(a, b); }
Tensor operator/(const Tensor& a, Number b) { return record_promoted(Op::div, {a, b}); }
Tensor operator/(Number a, const Tensor& b) { return record_promoted(Op::div, {a, b}); }
Tensor operator-(const Tensor& x) { return record(Op::neg, {x}); }

Tensor abs(const Tensor& x) { return record(Op::abs, {x}); }
Tensor sign(const Tensor& x) { return record(Op::sign, {x}); }
Tensor square(const Tensor& x) { return record(Op::square, {x}); }
Tensor reciprocal(const Tensor& x) { return record_float(Op::reciprocal, x); }
Tensor sqrt(const Tensor& x) { return record_float(Op::sqrt, x); }
Tensor rsqrt(const Tensor& x) { return record_float(Op::rsqrt, x); }
Tensor exp(const Tensor& x) { return record_float(Op::exp, x); }
Tensor exp2(const Tensor& x) { return record_float(Op::exp2, x); }
Tensor expm1(const Tensor& x) { return record_float(Op::expm1, x); }
Tensor log(const Tensor& x) { return record_float(Op::log, x); }
Tensor log2(const Tensor& x) { return record_float(Op::log2, x); }
Tensor log10(const Tensor& x) { return record_float(Op::log10, x); }
Tensor log1p(const Tensor& x) { return record_float(Op::log1p, x); }
Tensor tanh(const Tensor& x) { return record_float(Op::tanh, x); }
Tensor sigmoid(const Tensor& x) { return record_float(Op::sigmoid, x); }
Tensor erf(const Tensor& x) { return record_float(Op::erf, x); }
Tensor erfc(const Tensor& x) { return record_float(Op::erfc, x); }
Tensor sin(const Tensor& x) { return record_float(Op::sin, x); }
Tensor cos(const Tensor& x) { return record_float(Op::cos, x); }
Tensor floor(const Tensor& x) { return record(Op::floor, {x}); }
Tensor ceil(const Tensor& x) { return record(Op::ceil, {x}); }
Tensor trunc(const Tensor& x) { return record(Op::trunc, {x}); }
Tensor round(const Tensor& x) { return record(Op::round, {x}); }
Tensor clamp(const Tensor& x, Number min, Number max) {
  // A bound beyond the range of an integer dtype bounds nothing.
  const auto bound = [&](Number n, double nothing) {
    const bool is_beyond = x.defined() && is_int(x.dtype()) && n.is_integer && !ir::holds(x.dtype(), n.integer) &&
                           (n.integer > 0) == (nothing > 0);
    return is_beyond ? Number(nothing) : n;
  };
  const double infinity = std::numeric_limits<double>::infinity();
  return record(Op::clamp, {x}, {number_attr("min", bound(min, -infinity)), number_attr("max", bound(max, infinity))});
}

Tensor eq(const Tensor& a, const Tensor& b) { return record_promoted(Op::eq, {a, b}); }
Tensor eq(const Tensor& a, Number b) { return record_promoted(Op::eq, {a, b}); }
Tensor ne(const Tensor& a, const Tensor& b) { return record_promoted(Op::ne, {a, b}); }
Tensor ne(const Tensor& a, Number b) { return record_promoted(Op::ne, {a, b}); }
Tensor operator==(const Tensor& a, const Tensor& b) { return eq(a, b); }
Tensor operator==(const Tensor& a, Number b) { return eq(a, b); }
Tensor operator==(Number a, const Tensor& b) { return record_promoted(Op::eq, {a, b}); }
Tensor operator!=(const Tensor& a, const Tensor& b) { return ne(a, b); }
Tensor operator!=(const Tensor& a, Number b) { return ne(a, b); }
Tensor operator!=(Number a, const Tensor& b) { return record_promoted(Op::ne, {a, b}); }
Tensor operator<(const Tensor& a, const Tensor& b) { return record_promoted(Op::lt, {a, b}); }
Tensor operator<(const Tensor& a, Number b) { return record_promoted(Op::lt, {a, b}); }
Tensor operator<(Number a, const Tensor& b) { return record_promoted(Op::lt, {a, b}); }
Tensor operator<=(const Tensor& a, const Tensor& b) { return record_promoted(Op::le, {a, b}); }
Tensor operator<=(const Tensor& a, Number b) { return record_promoted(Op::le, {a, b}); }
Tensor operator<=(Number a, const Tensor& b) { return record_promoted(Op::le, {a, b}); }
Tensor operator>(const Tensor& a, const Tensor& b) { return record_promoted(Op::gt, {a, b}); }
Tensor operator>(const Tensor& a, Number b) { return record_promoted(Op::gt, {a, b}); }
Tensor operator>(Number a, const Tensor& b) { return record_promoted(Op::gt, {a, b}); }
Tensor operator>=(const Tensor& a, const Tensor& b) { return record_promoted(Op::ge, {a, b}); }
Tensor operator>=(const Tensor& a, Number b) { return record_promoted(Op::ge, {a, b}); }
Tensor operator>=(Number a, const Tensor& b) { return record_promoted(Op::ge, {a, b}); }
Tensor logical_and(const Tensor& a, const Tensor& b) { return record(Op::logical_and, {a, b}); }
Tensor logical_or(const Tensor& a, const Tensor& b) { return record(Op::logical_or, {a, b}); }
Tensor logical_xor(const Tensor& a, const Tensor& b) { return record(Op::logical_xor, {a, b}); }
Tensor logical_not(const Tensor& a) { return record(Op::logical_not, {a}); }
Tensor bitwise_and(const Tensor& a, const Tensor& b) { return record_promoted(Op::bitwise_and, {a, b}); }
Tensor bitwise_or(const Tensor& a, const Tensor& b) { return record_promoted(Op::bitwise_or, {a, b}); }
Tensor bitwise_xor(const Tensor& a, const Tensor& b) { return record_promoted(Op::bitwise_xor, {a, b}); }
Tensor bitwise_not(const Tensor& a) { return record(Op::bitwise_not, {a}); }
Tensor operator&(const Tensor& a, const Tensor& b) { return bitwise_and(a, b); }
Tensor operator&(const Tensor& a, Number b) { return record_promoted(Op::bitwise_and, {a, b}); }
Tensor operator&(Number a, const Tensor& b) { return record_promoted(Op::bitwise_and, {a, b}); }
Tensor operator|(const Tensor& a, const Tensor& b) { return bitwise_or(a, b); }
Tensor operator|(const Tensor& a, Number b) { return record_promoted(Op::bitwise_or, {a, b}); }
Tensor operator|(Number a, const Tensor& b) { return record_promoted(Op::bitwise_or, {a, b}); }
Tensor operator^(const Tensor& a, const Tensor& b) { return bitwise_xor(a, b); }
Tensor operator^(const Tensor& a, Number b) { return record_promoted(Op::bitwise_xor, {a, b}); }
Tensor operator^(Number a, const Tensor& b) { return record_promoted(Op::bitwise_xor, {a, b}); }
Tensor operator~(const Tensor& a) { return bitwise_not(a); }
Tensor isnan(const Tensor& x) { return record(Op::isnan, {x}); }
Tensor isinf(const Tensor& x) { return record(Op::isinf, {x}); }
Tensor isfinite(const Tensor& x) { return record(Op::isfinite, {x}); }

Tensor where(const Tensor& condition, const Tensor& a, const Tensor& b) {
  FJ_CHECK(a.defined() && b.defined(), "where: an operand is an empty tensor");
  const auto kind = [](DType d) { return is_float(d) ? 2 : is_int(d) ? 1 : 0; };
  if (kind(a.dtype()) > kind(b.dtype())) return record(Op::where, {condition, a, b.to(a.dtype())});
  if (kind(a.dtype()) < kind(b.dtype())) return record(Op::where, {condition, a.to(b.dtype()), b});
  return record(Op::where, {condition, a, b});
}
Tensor where(const Tensor& condition, const Tensor& a, Number b) { return record(Op::where, {condition, a, b}); }
Tensor where(const Tensor& condition, Number a, const Tensor& b) { return record(Op::where, {condition, a, b}); }

Tensor relu(const Tensor& x) { return record(Op::relu, {x}); }
Tensor relu6(const Tensor& x) { return record_float(Op::relu6, x); }
Tensor leaky_relu(const Tensor& x, double negative_slope) {
  return record_float(Op::leaky_relu, x, {{"negative_slope", negative_slope}});
}
Tensor elu(const Tensor& x, double alpha) { return record_float(Op::elu, x, {{"alpha", alpha}}); }
Tensor selu(const Tensor& x) { return record_float(Op::selu, x); }
Tensor gelu(const Tensor& x, const std::string& approximate) {
  return record_float(Op::gelu, x, {{"approximate", std::string_view(approximate)}});
}
Tensor silu(const Tensor& x) { return record_float(Op::silu, x); }
Tensor mish(const Tensor& x) { return record_float(Op::mish, x); }
Tensor softplus(const Tensor& x, double beta, double threshold) {
  return record_float(Op::softplus, x, {{"beta", beta}, {"threshold", threshold}});
}
Tensor hardsigmoid(const Tensor& x) { return record_float(Op::hardsigmoid, x); }
Tensor hardswish(const Tensor& x) { return record_float(Op::hardswish, x); }
Tensor softmax(const Tensor& x, int dim) { return record_float(Op::softmax, x, {{"dim", dim}}); }
Tensor log_softmax(const Tensor& x, int dim) { return record_float(Op::log_softmax, x, {{"dim", dim}}); }

Tensor dropout(const Tensor& x, double p) {
  FJ_CHECK(x.defined(), "dropout: the tensor is empty");
  FJ_CHECK(p >= 0 && p <= 1, "dropout: p is {}, it must lie between 0 and 1", p);
  const Draw draw = next_draw();
  return record(Op::dropout, {x, tensor_of(draw.seed, false, 0, std::nullopt)}, {{"p", p}, {"stream", draw.stream}});
}

}  // namespace fusejit
