// The distributions of fusejit/random.h, made of uniform draws.
#include "frontend/ops/random.h"

#include <numbers>

#include "frontend/context.h"
#include "frontend/ops/axis.h"
#include "frontend/record.h"
#include "fusejit/ops.h"
#include "ir/base/check.h"

namespace fusejit {
namespace {

using ir::Op;

// A factor that code generation may know: it never changes.
Tensor times(const Tensor& x, Number factor) { return record(Op::mul, {x, factor}); }

// sqrt(-2 ln v) cos(2 pi t). v is one of 48 bits in (0, 1], which keeps them where it is small, and there the tail is.
Tensor randn_on(const std::optional<Device>& device, const Shape& shape, DType dtype) {
  FJ_CHECK(is_float(dtype), "randn: dtype must be float, it is {}", name(dtype));
  const CalledAs called("randn");
  const DType wide = compute_type(dtype);
  const Tensor high = rand_on(device, shape, wide), low = rand_on(device, shape, wide);
  const Tensor v = high + times(1 - low, 0x1p-24);
  const Tensor turn = times(rand_on(device, shape, wide), 2 * std::numbers::pi);
  return (sqrt(times(log(v), -2.0)) * cos(turn)).to(dtype);
}

void check_deviation(double deviation) {
  FJ_CHECK(deviation >= 0, "normal: the deviation is {}, it must not be negative", deviation);
}

// The 24 bits of a uniform draw as a whole number.
Tensor bits24(const Shape& shape) { return times(rand(shape), 0x1p24).to(i64); }

}  // namespace

Tensor randn(const Shape& shape, DType dtype) { return randn_on(default_device(), shape, dtype); }
Tensor randn_like(const Tensor& x, std::optional<DType> dtype) {
  check_defined("randn_like", x);
  return randn_on(x.state()->device, x.shape(), dtype.value_or(x.dtype()));
}

Tensor normal(Number mean, Number deviation, const Shape& shape, DType dtype) {
  const CalledAs called("normal");
  check_deviation(deviation.is_integer ? static_cast<double>(deviation.integer) : deviation.real);
  FJ_CHECK(is_float(dtype), "normal: dtype must be float, it is {}", name(dtype));
  return (randn(shape, compute_type(dtype)) * deviation + mean).to(dtype);
}

Tensor normal(const Tensor& mean, const Tensor& deviation) {
  check_defined("normal", mean), check_defined("normal", deviation);
  Shape shape;
  FJ_CHECK(
      is_float(mean.dtype()) && is_float(deviation.dtype()) && broadcast_shapes(mean.shape(), deviation.shape(), shape),
      "normal: mean and deviation must be float, of shapes that broadcast (mean: {}, deviation: {})", mean.type().str(),
      deviation.type().str());
  const CalledAs called("normal");
  const DType dtype = *promote(mean.dtype(), deviation.dtype());
  const std::optional<Device>& device = mean.state()->device ? mean.state()->device : deviation.state()->device;
  return randn_on(device, shape, dtype) * deviation + mean;
}

Tensor randint(std::int64_t low, std::int64_t high, const Shape& shape, DType dtype) {
  FJ_CHECK(low < high, "randint: low must be less than high (low: {}, high: {})", low, high);
  const auto fits = [dtype](std::int64_t v) { return is_float(dtype) || ir::holds(dtype, v); };
  FJ_CHECK(is_tensor_dtype(dtype) && fits(low) && fits(high - 1), "randint: {} cannot hold the numbers {} to {}",
           name(dtype), low, high - 1);
  std::int64_t count = 0;
  FJ_CHECK(!__builtin_sub_overflow(high, low, &count), "randint: more than 2^63 numbers (low: {}, high: {})", low,
           high);
  const CalledAs called("randint");
  const Tensor upper = times(bits24(shape), 1 << 24);  // the first draw, whatever a compiler evaluates first
  Tensor word = upper + bits24(shape);
  if (count > 1 << 24) word = times(word, 1 << 24) + bits24(shape);  // wraps: 64 bits
  return (remainder(word, count) + low).to(dtype);
}
Tensor randint(std::int64_t high, const Shape& shape, DType dtype) { return randint(0, high, shape, dtype); }

Tensor randperm(std::int64_t count, DType dtype) {
  FJ_CHECK(count >= 0, "randperm: count is {}, it must not be negative", count);
  return from_host(random_permutation(count, next_seed()), {count}).to(dtype);
}

Tensor bernoulli(const Tensor& p) {
  check_defined("bernoulli", p);
  FJ_CHECK(is_float(p.dtype()), "bernoulli: p must be float (p: {})", p.type().str());
  const CalledAs called("bernoulli");
  const DType wide = compute_type(p.dtype());
  return (rand_on(p.state()->device, p.shape(), wide) < p.to(wide)).to(p.dtype());
}

Tensor bernoulli(const Tensor& x, double p) {
  check_defined("bernoulli", x);
  FJ_CHECK(p >= 0 && p <= 1, "bernoulli: p is {}, it must lie between 0 and 1", p);
  const CalledAs called("bernoulli");
  return (rand_on(x.state()->device, x.shape(), f32) < Number(p)).to(x.dtype());
}

}  // namespace fusejit
