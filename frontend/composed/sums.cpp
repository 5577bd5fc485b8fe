// The reductions, sums and products of vectors of fusejit/composed.h.
#include <cmath>

#include "frontend/ops/axis.h"
#include "frontend/record.h"
#include "fusejit/composed.h"
#include "ir/base/check.h"

namespace fusejit {
namespace {

void check_float(const char* op, const Tensor& x) {
  check_defined(op, x);
  FJ_CHECK(is_float(x.dtype()), "{}: x must be float (x: {})", op, x.type().str());
}

// sqrt(x), x >= 0, with the gradient 0 at 0, where a sum of squares has its minimum.
Tensor root(const Tensor& x) {
  const Tensor none = x == 0;
  return where(none, 0, sqrt(where(none, 1, x)));
}

}  // namespace

Tensor norm(const Tensor& given, double p, const Dims& dim, bool keepdim) {
  check_float("norm", given);
  const Tensor x = autocast(ir::AutocastRule::wide, given);
  const Dims axes = axes_of("norm", x, dim);
  const CalledAs called("norm");
  if (p == 1) return sum(abs(wide(x)), axes, keepdim).to(x.dtype());
  if (p == 2) return root(sum(square(wide(x)), axes, keepdim)).to(x.dtype());
  if (!(std::isinf(p) && p > 0))
    throw UnsupportedError(fmt::format("norm: p is {}, it may be 1, 2 or infinity (x: {})", p, x.type().str()));
  for (const std::int64_t axis : axes)
    FJ_CHECK(x.size(static_cast<int>(axis)) > 0, "norm: there is no largest of no elements (x: {})", x.type().str());
  return amax(abs(x), axes, keepdim);
}

Tensor std(const Tensor& x, const Dims& dim, std::int64_t correction, bool keepdim) {
  check_float("std", x);
  const Dims axes = axes_of("std", x, dim);
  const CalledAs called("std");
  return root(var(wide(x), axes, correction, keepdim)).to(x.dtype());
}

// The largest element is taken off, where it is finite. It is a constant to the gradient: it drops out of the value.
Tensor logsumexp(const Tensor& given, const Dims& dim, bool keepdim) {
  check_defined("logsumexp", given);
  const Tensor x = autocast(ir::AutocastRule::wide, given);
  const Dims axes = axes_of("logsumexp", x, dim);
  const CalledAs called("logsumexp");
  const DType dtype = is_float(x.dtype()) ? x.dtype() : f32;
  const Tensor v = x.to(compute_type(dtype));
  bool empty = false;
  for (const std::int64_t axis : axes) empty |= x.size(static_cast<int>(axis)) == 0;
  if (empty) return log(sum(exp(v), axes, keepdim)).to(dtype);
  const Tensor largest = amax(v, axes, true).detach();
  const Tensor shift = where(isfinite(largest), largest, 0);
  Tensor result = log(sum(exp(v - shift), axes, true)) + shift;
  if (!keepdim && !axes.empty()) result = squeeze(result, axes);
  return result.to(dtype);
}

// Hillis and Steele 1986: after the round of s every place holds the sum of the last 2s elements up to it.
Tensor cumsum(const Tensor& given, int dim) {
  const int axis = axis_of("cumsum", given, dim);
  const Tensor x = autocast(ir::AutocastRule::wide, given);
  const CalledAs called("cumsum");
  const std::int64_t extent = x.size(axis);
  const DType dtype = is_float(x.dtype()) ? x.dtype() : i64;
  Tensor y = x.to(compute_type(dtype));
  Dims before(static_cast<std::size_t>(x.rank()), 0);
  const Dims after(before);
  for (std::int64_t s = 1; s < extent; s *= 2) {
    before[static_cast<std::size_t>(axis)] = s;
    y = y + pad(slice(y, axis, 0, extent - s), before, after);
  }
  return y.to(dtype);
}

Tensor outer(const Tensor& a, const Tensor& b) {
  check_defined("outer", a), check_defined("outer", b);
  FJ_CHECK(a.rank() == 1 && b.rank() == 1, "outer: both operands must have one axis (a: {}, b: {})", a.type().str(),
           b.type().str());
  const CalledAs called("outer");
  return unsqueeze(a, 1) * b;
}

Tensor dot(const Tensor& left, const Tensor& right) {
  check_defined("dot", left), check_defined("dot", right);
  const std::vector<Tensor> operands = autocast_to_widest({left, right});
  const Tensor &a = operands[0], &b = operands[1];
  FJ_CHECK(a.rank() == 1 && a.shape() == b.shape() && a.dtype() == b.dtype() && a.dtype() != boolean,
           "dot: both operands must have one axis, of the same extent and dtype, no bool (a: {}, b: {})",
           a.type().str(), b.type().str());
  const CalledAs called("dot");
  return sum(wide(a) * wide(b)).to(a.dtype());
}

}  // namespace fusejit
