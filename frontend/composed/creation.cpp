// The sequences and the *_like functions of fusejit/tensor.h.
#include <cmath>

#include "frontend/ops/axis.h"
#include "frontend/ops/random.h"
#include "frontend/record.h"
#include "ir/base/check.h"

namespace fusejit {
namespace {

using ir::Op;

constexpr std::int64_t kMost = std::int64_t{1} << 40;  // elements of a tensor

double in_f64(Number n) { return n.is_integer ? static_cast<double>(n.integer) : n.real; }

std::string text(Number n) { return n.is_integer ? std::to_string(n.integer) : fmt::format("{}", n.real); }

std::string text(Number start, Number stop, Number step) {
  return fmt::format("start {}, stop {}, step {}", text(start), text(stop), text(step));
}

// How many numbers there are from start up to stop.
std::int64_t count_of(Number start, Number stop, Number step) {
  const std::string range = text(start, stop, step);
  if (start.is_integer && stop.is_integer && step.is_integer) {
    const __int128 distance = static_cast<__int128>(stop.integer) - start.integer, by = step.integer;
    FJ_CHECK(by != 0 && (distance == 0 || (distance > 0) == (by > 0)), "arange: the step must lead to stop ({})",
             range);
    const __int128 count = (distance + by + (by > 0 ? -1 : 1)) / by;
    FJ_CHECK(count <= kMost, "arange: more than 2^40 numbers ({})", range);
    return static_cast<std::int64_t>(count);
  }
  const double distance = in_f64(stop) - in_f64(start), by = in_f64(step);
  FJ_CHECK(std::isfinite(distance) && std::isfinite(by), "arange: the numbers must be finite ({})", range);
  FJ_CHECK(by != 0 && (distance == 0 || (distance > 0) == (by > 0)), "arange: the step must lead to stop ({})", range);
  const double count = std::ceil(distance / by);
  FJ_CHECK(count <= static_cast<double>(kMost), "arange: more than 2^40 numbers ({})", range);
  return static_cast<std::int64_t>(count);
}

}  // namespace

Tensor arange(Number start, Number stop, Number step, std::optional<DType> dtype) {
  const CalledAs called("arange");
  const bool whole = start.is_integer && stop.is_integer && step.is_integer;
  const DType type = dtype.value_or(whole ? i64 : f32);
  FJ_CHECK(is_int(type) || is_float(type), "arange: {} is no dtype of numbers", name(type));
  const std::int64_t count = count_of(start, stop, step);
  if (!is_int(type)) return (arange(count, f64) * Number(in_f64(step)) + Number(in_f64(start))).to(type);
  FJ_CHECK(whole, "arange: {} needs whole numbers ({})", name(type), text(start, stop, step));
  const std::int64_t last = count == 0 ? start.integer : start.integer + (count - 1) * step.integer;
  FJ_CHECK(ir::holds(type, start.integer) && ir::holds(type, last), "arange: {} cannot hold the numbers ({})",
           name(type), text(start, stop, step));
  return (arange(count) * step + start).to(type);
}

Tensor linspace(Number start, Number stop, std::int64_t steps, DType dtype) {
  const CalledAs called("linspace");
  FJ_CHECK(steps >= 0, "linspace: steps is {}, it must not be negative", steps);
  FJ_CHECK(is_int(dtype) || is_float(dtype), "linspace: {} is no dtype of numbers", name(dtype));
  const double first = in_f64(start), last = in_f64(stop);
  const Number step = steps > 1 ? (last - first) / static_cast<double>(steps - 1) : 0.0;
  const Tensor i = arange(steps, f64);
  const Tensor rising = i * step + Number(first);
  if (steps <= 1) return rising.to(dtype);
  const Tensor falling = Number(last) - (Number(static_cast<double>(steps - 1)) - i) * step;
  return where(i < Number(static_cast<double>(steps / 2)), rising, falling).to(dtype);
}

Tensor full_like(const Tensor& x, Number value, std::optional<DType> dtype) {
  check_defined("full_like", x);
  return record_on(x.state()->device, Op::full, {},
                   {{"shape", x.shape().dims()}, number_attr("value", value), {"dtype", dtype.value_or(x.dtype())}});
}
Tensor zeros_like(const Tensor& x, std::optional<DType> dtype) { return full_like(x, 0, dtype); }
Tensor ones_like(const Tensor& x, std::optional<DType> dtype) { return full_like(x, 1, dtype); }
Tensor rand_like(const Tensor& x, std::optional<DType> dtype) {
  check_defined("rand_like", x);
  return rand_on(x.state()->device, x.shape(), dtype.value_or(x.dtype()));
}

}  // namespace fusejit
