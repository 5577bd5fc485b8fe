// Sums and extremes over axes. The axes became an operand in op set 18, those of ReduceSum in 13.
#include "frontend/onnx/call.h"
#include "ir/base/check.h"

namespace fusejit::onnx {
namespace {

using Tensors = std::vector<Tensor>;
using Reduction = Tensor (*)(const Tensor& x, const Dims& axes, bool keeps);

// Integers keep their dtype, as they do in ONNX.
Tensor sum_of(const Tensor& x, const Dims& axes, bool keeps) { return sum(x, axes, keeps).to(x.dtype()); }
Tensor product_of(const Tensor& x, const Dims& axes, bool keeps) { return prod(x, axes, keeps).to(x.dtype()); }
Tensor mean_of(const Tensor& x, const Dims& axes, bool keeps) {
  FJ_CHECK(is_float(x.dtype()), "the mean of integers is not understood (x: {})", x.type().str());
  return mean(x, axes, keeps);
}
Tensor sum_of_magnitudes(const Tensor& x, const Dims& axes, bool keeps) { return sum_of(abs(x), axes, keeps); }
Tensor sum_of_squares(const Tensor& x, const Dims& axes, bool keeps) { return sum_of(square(x), axes, keeps); }
Tensor length_of(const Tensor& x, const Dims& axes, bool keeps) { return sqrt(sum(square(x), axes, keeps)); }
Tensor log_of_sum(const Tensor& x, const Dims& axes, bool keeps) { return log(sum(x, axes, keeps)); }
// Relative to the largest, so that nothing overflows; where that is infinite there is nothing to be relative to.
Tensor log_of_sum_of_exps(const Tensor& x, const Dims& axes, bool keeps) {
  const Tensor largest = amax(x, axes, true).detach();
  const Tensor base = where(isfinite(largest), largest, 0);
  const Tensor y = log(sum(exp(x - base), axes, true)) + base;
  return keeps ? y : sum(y, axes, false);  // axes of extent 1
}

template <Reduction f>
Tensors reduced(const Call& c) {
  const Tensor x = c.tensor(0);
  const Dims axes = c.has("axes") ? c.integers("axes") : c.integers_at(1);
  if (axes.empty() && c.integer("noop_with_empty_axes", 0) != 0) return {x};
  return {f(x, axes, c.integer("keepdims", 1) != 0)};
}

template <Tensor (*f)(const Tensor&, int, bool)>
Tensors place_of_extreme(const Call& c) {
  return {f(c.tensor(0), axis_of(c.integer("axis", 0), c.tensor(0).rank()), c.integer("keepdims", 1) != 0)};
}

// The same function before and since the axes are an operand. may_do_nothing: without axes x itself can be meant.
template <Reduction f>
void add_rows(std::vector<Row>& rows, const char* op, bool may_do_nothing, int axes_since = 18) {
  if (axes_since > 13) {
    rows.push_back({.op = op,
                    .until = axes_since - 1,
                    .attributes = {{"axes", Kind::integers}, {"keepdims", Kind::integer, "0|1"}},
                    .mean = reduced<f>});
  }
  rows.push_back({.op = op,
                  .since = axes_since,
                  .most = 2,
                  .attributes = {{"keepdims", Kind::integer, "0|1"},
                                 {"noop_with_empty_axes", Kind::integer, may_do_nothing ? "0|1" : "0"}},
                  .mean = reduced<f>});
}

}  // namespace

std::vector<Row> reduction_rows() {
  const std::vector<AttributeRule> extreme{
      {"axis", Kind::integer}, {"keepdims", Kind::integer, "0|1"}, {"select_last_index", Kind::integer, "0"}};
  std::vector<Row> rows{{.op = "ArgMax", .attributes = extreme, .mean = place_of_extreme<argmax>},
                        {.op = "ArgMin", .attributes = extreme, .mean = place_of_extreme<argmin>}};
  add_rows<sum_of>(rows, "ReduceSum", true, 13);
  add_rows<mean_of>(rows, "ReduceMean", true);
  add_rows<product_of>(rows, "ReduceProd", true);
  add_rows<amax>(rows, "ReduceMax", true);
  add_rows<amin>(rows, "ReduceMin", true);
  add_rows<sum_of_magnitudes>(rows, "ReduceL1", false);
  add_rows<length_of>(rows, "ReduceL2", false);
  add_rows<sum_of_squares>(rows, "ReduceSumSquare", false);
  add_rows<log_of_sum>(rows, "ReduceLogSum", false);
  add_rows<log_of_sum_of_exps>(rows, "ReduceLogSumExp", false);
  return rows;
}

}  // namespace fusejit::onnx
