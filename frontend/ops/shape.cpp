// The reductions and views of fusejit/ops.h.
#include <algorithm>
#include <numeric>

#include "frontend/ops/axis.h"
#include "frontend/record.h"
#include "fusejit/ops.h"
#include "ir/base/check.h"

namespace fusejit {
namespace {

using ir::Op;
using Span = std::span<const std::int64_t>;

Tensor reduce(Op op, const Tensor& x, const Dims& dim, bool keepdim) {
  FJ_CHECK(x.defined(), "{}: the tensor is empty", ir::name(op));
  if (dim.empty()) return record(op, {x}, {{"keepdim", keepdim}});
  return record(op, {x}, {{"dim", Span(dim)}, {"keepdim", keepdim}});
}

}  // namespace

Tensor sum(const Tensor& x, const Dims& dim, bool keepdim) { return reduce(Op::sum, x, dim, keepdim); }
Tensor mean(const Tensor& x, const Dims& dim, bool keepdim) { return reduce(Op::mean, x, dim, keepdim); }
Tensor prod(const Tensor& x, const Dims& dim, bool keepdim) { return reduce(Op::prod, x, dim, keepdim); }
Tensor amax(const Tensor& x, const Dims& dim, bool keepdim) { return reduce(Op::amax, x, dim, keepdim); }
Tensor amin(const Tensor& x, const Dims& dim, bool keepdim) { return reduce(Op::amin, x, dim, keepdim); }
Tensor any(const Tensor& x, const Dims& dim, bool keepdim) { return reduce(Op::any, x, dim, keepdim); }
Tensor all(const Tensor& x, const Dims& dim, bool keepdim) { return reduce(Op::all, x, dim, keepdim); }
Tensor var(const Tensor& x, const Dims& dim, std::int64_t correction, bool keepdim) {
  if (dim.empty()) return record(Op::var, {x}, {{"correction", correction}, {"keepdim", keepdim}});
  return record(Op::var, {x}, {{"dim", Span(dim)}, {"correction", correction}, {"keepdim", keepdim}});
}
Tensor argmax(const Tensor& x, int dim, bool keepdim) {
  return record(Op::argmax, {x}, {{"dim", dim}, {"keepdim", keepdim}});
}
Tensor argmin(const Tensor& x, int dim, bool keepdim) {
  return record(Op::argmin, {x}, {{"dim", dim}, {"keepdim", keepdim}});
}

Tensor reshape(const Tensor& x, const Dims& shape) { return record(Op::reshape, {x}, {{"shape", Span(shape)}}); }
Tensor flatten(const Tensor& x, int start_dim, int end_dim) {
  return record(Op::flatten, {x}, {{"start_dim", start_dim}, {"end_dim", end_dim}});
}
Tensor permute(const Tensor& x, const Dims& dims) { return record(Op::permute, {x}, {{"dims", Span(dims)}}); }

Tensor transpose(const Tensor& x, int a, int b) {
  Dims dims(static_cast<std::size_t>(x.rank()));
  std::iota(dims.begin(), dims.end(), 0);
  std::swap(dims[static_cast<std::size_t>(axis_of("transpose", x, a))],
            dims[static_cast<std::size_t>(axis_of("transpose", x, b))]);
  return permute(x, dims);
}

Tensor squeeze(const Tensor& x, const Dims& dim) {
  return dim.empty() ? record(Op::squeeze, {x}) : record(Op::squeeze, {x}, {{"dim", Span(dim)}});
}
Tensor unsqueeze(const Tensor& x, int dim) { return record(Op::unsqueeze, {x}, {{"dim", dim}}); }

Tensor expand(const Tensor& x, const Dims& shape) {
  Dims full = shape;
  const auto extra = static_cast<std::int64_t>(shape.size()) - x.rank();
  for (std::size_t i = 0; i < full.size(); ++i) {
    if (full[i] != -1) continue;
    const std::int64_t axis = static_cast<std::int64_t>(i) - extra;
    FJ_CHECK(axis >= 0, "expand: -1 stands for a dim that x does not have (x: {})", x.type().str());
    full[i] = x.shape()[static_cast<int>(axis)];
  }
  return record(Op::expand, {x}, {{"shape", Span(full)}});
}

Tensor slice(const Tensor& x, int dim, std::int64_t start, std::int64_t stop, std::int64_t step) {
  const auto axis = static_cast<std::size_t>(axis_of("slice", x, dim));
  FJ_CHECK(step >= 1, "slice: step is {}, it must be at least 1", step);
  Dims starts(static_cast<std::size_t>(x.rank()), 0), stops(x.shape().begin(), x.shape().end()),
      steps(starts.size(), 1);
  const std::int64_t size = stops[axis];
  const auto clamped = [size](std::int64_t v) { return std::clamp<std::int64_t>(v < 0 ? v + size : v, 0, size); };
  starts[axis] = clamped(start);
  stops[axis] = std::max(starts[axis], clamped(stop));
  steps[axis] = step;
  return record(Op::slice, {x}, {{"starts", Span(starts)}, {"stops", Span(stops)}, {"steps", Span(steps)}});
}

Tensor pad(const Tensor& x, const Dims& low, const Dims& high, Number value) {
  return record(Op::pad, {x}, {{"low", Span(low)}, {"high", Span(high)}, number_attr("value", value)});
}

Tensor concat(const std::vector<Tensor>& tensors, int dim) {
  FJ_CHECK(!tensors.empty(), "concat: there is nothing to join");
  for (const Tensor& t : tensors) check_defined("concat", t);
  const DType dtype = common_dtype(tensors);
  std::vector<Tensor> parts;
  for (const Tensor& t : tensors) parts.push_back(t.to(dtype));
  const std::vector<Input> inputs(parts.begin(), parts.end());
  return record(Op::concat, std::span<const Input>(inputs), {{"dim", dim}});
}

Tensor flip(const Tensor& x, const Dims& dims) { return record(Op::flip, {x}, {{"dims", Span(dims)}}); }
Tensor gather(const Tensor& x, int dim, const Tensor& index) { return record(Op::gather, {x, index}, {{"dim", dim}}); }
Tensor one_hot(const Tensor& index, std::int64_t num_classes, DType dtype) {
  return record(Op::one_hot, {index}, {{"num_classes", num_classes}, {"dtype", dtype}});
}

}  // namespace fusejit
