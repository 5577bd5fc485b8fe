// Reductions (ops.md §8). Each keeps the dims that are not in `dim`; `evaluate` accumulates floats in f64 and rounds
// once.
#include <algorithm>
#include <cmath>
#include <limits>

#include "ir/base/check.h"
#include "ir/infer.h"
#include "ir/interp.h"
#include "ir/kernel/combiner.h"
#include "ir/ops/compose.h"
#include "ir/ops/rows.h"
#include "ir/passes/grad.h"

namespace fusejit::ir {
namespace {

using namespace expr;
using compose::Dims;

// argmax and argmin have one dim, the others a list.
Dims reduced_dims(const Attrs& attrs) {
  const Attr& dim = attrs[0];
  if (attrs.schema()[0].kind == AttrKind::dim) return {dim.integer};
  return dim.ints;
}

bool holds(const Dims& dims, int d) { return std::find(dims.begin(), dims.end(), d) != dims.end(); }

Shape reduced_shape(const InferContext& c) {
  const Shape& x = c.type(0).shape;
  const Dims dims = reduced_dims(c.attrs);
  if (dims.empty() && x.rank() > 0) c.fail("dim=[] is legal only for a 0-d x");
  Dims sizes;
  for (int d = 0; d < x.rank(); ++d) {
    if (!holds(dims, d))
      sizes.push_back(x[d]);
    else if (c.attrs.flag("keepdim"))
      sizes.push_back(1);
  }
  return shape_from(c, sizes);
}

Type infer_sum(const InferContext& c) {
  return {is_float(c.type(0).dtype) ? c.type(0).dtype : DType::i64, reduced_shape(c)};
}
Type infer_mean(const InferContext& c) {
  if (!is_float(c.type(0).dtype)) c.fail(fmt::format("x must be float, it is {}", name(c.type(0).dtype)));
  return {c.type(0).dtype, reduced_shape(c)};
}
Type infer_truth(const InferContext& c) { return {DType::boolean, reduced_shape(c)}; }

void require_elements(const InferContext& c) {
  for (std::int64_t d : reduced_dims(c.attrs))
    if (c.type(0).shape[static_cast<int>(d)] == 0) c.fail(fmt::format("dim {} is empty and has no extreme", d));
}
Type infer_extreme(const InferContext& c) {
  require_elements(c);
  return {c.type(0).dtype, reduced_shape(c)};
}
Type infer_index(const InferContext& c) {
  require_elements(c);
  return {DType::i64, reduced_shape(c)};
}

// Calls f(element of the result, element of x, index along a single reduced dim) for x in row-major order.
template <class F>
void each(const EvalContext& c, F f) {
  const Shape& x = c.operands[0]->type.shape;
  const Dims dims = reduced_dims(c.node.attrs);
  Dims strides(static_cast<std::size_t>(x.rank()), 0), index(strides);
  std::int64_t stride = 1;
  for (int d = x.rank(); d-- > 0;)
    if (!holds(dims, d)) strides[static_cast<std::size_t>(d)] = stride, stride *= x[d];
  const std::size_t along = dims.empty() ? 0 : static_cast<std::size_t>(dims[0]);
  std::int64_t out = 0;
  for (std::int64_t i = 0; i < x.elements(); ++i) {
    f(out, c.operands[0]->at(i), index.empty() ? 0 : index[along]);
    for (int d = x.rank(); d-- > 0;) {
      const auto k = static_cast<std::size_t>(d);
      out += strides[k];
      if (++index[k] < x[d]) break;
      out -= strides[k] * x[d];
      index[k] = 0;
    }
  }
}

std::size_t result_count(const EvalContext& c) { return static_cast<std::size_t>(c.result.type.elements()); }

// Folds floats in f64 and anything else as wrapping 64-bit integers.
template <class F, class G>
void accumulate(const EvalContext& c, F fold_real, G fold_whole, double divisor = 1) {
  const Combiner combiner = op_def(c.node.op).combiner;
  if (is_float(c.result.type.dtype)) {
    std::vector<double> sums(result_count(c), identity(combiner, 0, DType::f64).f64());
    each(c,
         [&](std::int64_t o, Scalar v, std::int64_t) { fold_real(sums[static_cast<std::size_t>(o)], v.as_double()); });
    for (std::size_t i = 0; i < sums.size(); ++i)
      c.result.set(static_cast<std::int64_t>(i), cast(Scalar::of(sums[i] / divisor), c.result.type.dtype));
    return;
  }
  std::vector<std::uint64_t> sums(result_count(c), identity(combiner, 0, DType::i64).bits);
  each(c, [&](std::int64_t o, Scalar v, std::int64_t) {
    fold_whole(sums[static_cast<std::size_t>(o)], cast(v, DType::i64).bits);
  });
  for (std::size_t i = 0; i < sums.size(); ++i) c.result.set(static_cast<std::int64_t>(i), {DType::i64, sums[i]});
}

void evaluate_sum(const EvalContext& c) {
  accumulate(
      c, [](double& s, double v) { s += v; }, [](std::uint64_t& s, std::uint64_t v) { s += v; });
}
void evaluate_mean(const EvalContext& c) {
  const double n = static_cast<double>(compose::extent(c.operands[0]->type.shape, reduced_dims(c.node.attrs)));
  accumulate(
      c, [](double& s, double v) { s += v; }, [](std::uint64_t& s, std::uint64_t v) { s += v; }, n);
}
void evaluate_prod(const EvalContext& c) {
  accumulate(
      c, [](double& s, double v) { s *= v; }, [](std::uint64_t& s, std::uint64_t v) { s *= v; });
}

template <bool kAny>
void evaluate_truth(const EvalContext& c) {
  for (std::int64_t i = 0; i < c.result.type.elements(); ++i)
    c.result.set(i, identity(op_def(c.node.op).combiner, 0, DType::boolean));
  each(c, [&](std::int64_t o, Scalar v, std::int64_t) {
    if (cast(v, DType::boolean).boolean() == kAny) c.result.set(o, Scalar::of(kAny));
  });
}

bool is_nan(Scalar s) { return is_float(s.dtype) && std::isnan(s.as_double()); }

// a stands further out than b: NaN first of all, then the order of values.
bool beyond(Scalar a, Scalar b, bool largest) {
  if (is_nan(b)) return false;
  if (is_nan(a)) return true;
  if (is_float(a.dtype)) return largest ? a.as_double() > b.as_double() : a.as_double() < b.as_double();
  const std::int64_t x = cast(a, DType::i64).i64(), y = cast(b, DType::i64).i64();
  return largest ? x > y : x < y;
}

template <bool kLargest, bool kIndex>
void evaluate_extreme(const EvalContext& c) {
  std::vector<Scalar> best(result_count(c));
  std::vector<std::int64_t> where(best.size(), -1);
  each(c, [&](std::int64_t o, Scalar v, std::int64_t index) {
    const auto i = static_cast<std::size_t>(o);
    if (where[i] < 0 || beyond(v, best[i], kLargest)) best[i] = v, where[i] = index;
  });
  for (std::size_t i = 0; i < best.size(); ++i)
    c.result.set(static_cast<std::int64_t>(i), kIndex ? Scalar::of(where[i]) : best[i]);
}

// A value of the reduced shape in x's shape.
Value spread(const Value& v, const GradContext& g) {
  const Shape& x = g.x(0).type().shape;
  const Value kept = compose::reshape(v, compose::kept(x, reduced_dims(g.y->attrs)));
  return build(Op::expand, {kept}, {{"shape", x.dims()}});
}

std::vector<Value> grad_mean(const GradContext& g) {
  const double n = static_cast<double>(compose::extent(g.x(0).type().shape, reduced_dims(g.y->attrs)));
  return {spread(g.dy / n, g)};
}

// The product of the others: y/x without zeros; with one zero it is the product of the rest, for that element alone.
std::vector<Value> grad_prod(const GradContext& g) {
  const Value x = compose::wide(g.x(0));
  const Dims dims = reduced_dims(g.y->attrs);
  const Value zero = build(Op::eq, {x, 0});
  const Value zeros = compose::sum(build(Op::cast, {zero}, {{"dtype", i64}}), dims, true);
  const Value rest =
      build(Op::prod, {compose::where(zero, 1, x)}, {{"dim", std::span<const std::int64_t>(dims)}, {"keepdim", true}});
  const Value alone = compose::where(build(Op::eq, {zeros, 1}), rest, 0);
  const Value others = compose::where(zero, alone, compose::where(build(Op::eq, {zeros, 0}), rest / x, 0));
  return {compose::cast_to(compose::wide(spread(g.dy, g)) * others, g.x(0).type().dtype)};
}

// Ties share evenly; a NaN result is shared by the NaNs.
std::vector<Value> grad_extreme(const GradContext& g) {
  const Value& x = g.x(0);
  const Value y = spread(g.y, g);
  const Value both_nan = build(Op::logical_and, {build(Op::isnan, {x}), build(Op::isnan, {y})});
  const Value tie = build(Op::logical_or, {build(Op::eq, {x, y}), both_nan});
  const Value ones = build(Op::cast, {tie}, {{"dtype", compute_type(x.type().dtype)}});
  const Value ties = compose::sum(ones, reduced_dims(g.y->attrs), true);
  const Value share = compose::where(tie, compose::wide(spread(g.dy, g)) / ties, 0);
  return {compose::cast_to(share, x.type().dtype)};
}

constexpr AttrDef kDims[] = {{"dim", AttrKind::dims, "all"}, {"keepdim", AttrKind::flag, "false"}};
constexpr AttrDef kDim[] = {{"dim", AttrKind::dim}, {"keepdim", AttrKind::flag, "false"}};

constexpr OpDef kRows[] = {
    {.op = Op::sum,
     .name = "sum",
     .family = Family::reduce,
     .attrs = kDims,
     .infer = infer_sum,
     .grad = [](const GradContext& g) { return std::vector<Value>{spread(g.dy, g)}; },
     .evaluate = evaluate_sum,
     .autocast = AutocastRule::wide,
     .meaning = "the sum over the dims; ints and bools give i64; empty: 0"},
    {.op = Op::mean,
     .name = "mean",
     .family = Family::reduce,
     .attrs = kDims,
     .infer = infer_mean,
     .grad = grad_mean,
     .evaluate = evaluate_mean,
     .meaning = "the mean over the dims; empty: NaN"},
    {.op = Op::prod,
     .name = "prod",
     .family = Family::reduce,
     .attrs = kDims,
     .infer = infer_sum,
     .grad = grad_prod,
     .evaluate = evaluate_prod,
     .combiner = Combiner::mul,
     .autocast = AutocastRule::wide,
     .meaning = "the product over the dims; ints and bools give i64; empty: 1"},
    {.op = Op::amax,
     .name = "amax",
     .family = Family::reduce,
     .attrs = kDims,
     .infer = infer_extreme,
     .grad = grad_extreme,
     .evaluate = evaluate_extreme<true, false>,
     .combiner = Combiner::maximum,
     .meaning = "the largest over the dims; NaN wins"},
    {.op = Op::amin,
     .name = "amin",
     .family = Family::reduce,
     .attrs = kDims,
     .infer = infer_extreme,
     .grad = grad_extreme,
     .evaluate = evaluate_extreme<false, false>,
     .combiner = Combiner::minimum,
     .meaning = "the smallest over the dims; NaN wins"},
    {.op = Op::any,
     .name = "any",
     .family = Family::reduce,
     .attrs = kDims,
     .infer = infer_truth,
     .no_gradient = true,
     .evaluate = evaluate_truth<true>,
     .combiner = Combiner::logical_or,
     .meaning = "true if one is nonzero; empty: false"},
    {.op = Op::all,
     .name = "all",
     .family = Family::reduce,
     .attrs = kDims,
     .infer = infer_truth,
     .no_gradient = true,
     .evaluate = evaluate_truth<false>,
     .combiner = Combiner::logical_and,
     .meaning = "true if all are nonzero; empty: true"},
    {.op = Op::argmax,
     .name = "argmax",
     .family = Family::reduce,
     .attrs = kDim,
     .infer = infer_index,
     .no_gradient = true,
     .evaluate = evaluate_extreme<true, true>,
     .combiner = Combiner::argmax,
     .meaning = "the index of the first largest along a dim; NaN is the largest"},
    {.op = Op::argmin,
     .name = "argmin",
     .family = Family::reduce,
     .attrs = kDim,
     .infer = infer_index,
     .no_gradient = true,
     .evaluate = evaluate_extreme<false, true>,
     .combiner = Combiner::argmin,
     .meaning = "the index of the first smallest along a dim; NaN is the smallest"},
};
static_assert(rows_fill(kRows, kReduce), "a row is missing or out of order");
static_assert(all_well_formed(kRows), "a row lacks a field of its family");

}  // namespace

std::span<const OpDef> reduce_rows() { return kRows; }

}  // namespace fusejit::ir
