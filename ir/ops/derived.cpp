// flatten and var: a view and a reduction that are short for others (ops.md §8, §9).
#include <algorithm>
#include <cmath>
#include <limits>

#include "ir/base/check.h"
#include "ir/ops/compose.h"
#include "ir/ops/oracle/oracle.h"
#include "ir/ops/require.h"
#include "ir/ops/rows.h"
#include "ir/passes/grad.h"

namespace fusejit::ir {
namespace {

using namespace compose;
using namespace expr;
using Operands = std::span<const Operand>;

// ---- flatten

Type infer_flatten(const InferContext& context) {
  const Type& x = context.type(0);
  const std::int64_t start = context.attrs.integer("start_dim"), end = context.attrs.integer("end_dim");
  if (start > end) context.fail(fmt::format("start_dim = {} stands after end_dim = {}", start, end));
  Dims sizes;
  for (std::int64_t axis = 0; axis < x.shape.rank(); ++axis) {
    const std::int64_t size = x.shape[static_cast<int>(axis)];
    if (axis > start && axis <= end)
      sizes.back() *= size;
    else
      sizes.push_back(size);
  }
  if (sizes.empty()) sizes.push_back(1);
  return {x.dtype, Shape(sizes)};
}

void evaluate_flatten(const EvalContext& context) { context.result.bytes = context.operands[0]->bytes; }

// ---- var

Type infer_var(const InferContext& context) {
  require_float(context, 0);
  const Type& x = context.type(0);
  const auto reduced = context.attrs.ints("dim");
  if (reduced.empty() && x.shape.rank() > 0) context.fail("dim is empty, which is legal only for a 0-d x");
  Dims sizes;
  for (int axis = 0; axis < x.shape.rank(); ++axis) {
    if (std::find(reduced.begin(), reduced.end(), axis) == reduced.end())
      sizes.push_back(x.shape[axis]);
    else if (context.attrs.flag("keepdim"))
      sizes.push_back(1);
  }
  return {x.dtype, Shape(sizes)};
}

Dims reduced_dims(const Attrs& attrs) {
  const auto dims = attrs.ints("dim");
  return Dims(dims.begin(), dims.end());
}

// max(0, n - correction); n = correction makes NaN.
double divisor(std::int64_t count, const Attrs& attrs) {
  const double left = static_cast<double>(count) - static_cast<double>(attrs.integer("correction"));
  return left == 0 ? std::numeric_limits<double>::quiet_NaN() : std::max(left, 0.0);
}

std::vector<Value> grad_var(const GradContext& context) {
  const Value x = wide(context.x(0));
  const Attrs& attrs = context.y->attrs;
  const Dims dims = reduced_dims(attrs);
  const Value g = reshape(wide(context.dy), kept(x.type().shape, dims));
  const Value coefficient = 2 * g / divisor(extent(x.type().shape, dims), attrs);
  return {cast_to(centred(x, dims).difference * coefficient, context.x(0).type().dtype)};
}

void evaluate_var(const EvalContext& context) {
  const std::vector<double> x = oracle::doubles(context, 0);
  const Shape& shape = oracle::shape(context, 0);
  const Dims dims = reduced_dims(context.node.attrs);
  const Shape slots = kept(shape, dims);
  const auto slot = oracle::broadcast_positions(slots, shape);
  const double count = static_cast<double>(extent(shape, dims));
  std::vector<double> means(static_cast<std::size_t>(slots.elements())), squares(means.size());
  for (std::size_t i = 0; i < x.size(); ++i) means[static_cast<std::size_t>(slot[i])] += x[i];
  for (double& m : means) m /= count;
  for (std::size_t i = 0; i < x.size(); ++i) {
    const double difference = x[i] - means[static_cast<std::size_t>(slot[i])];
    squares[static_cast<std::size_t>(slot[i])] += difference * difference;
  }
  for (double& s : squares) s /= divisor(extent(shape, dims), context.node.attrs);
  oracle::store(context.result, squares);
}

// ---- rows

constexpr std::string_view kX[] = {"x"};
constexpr AttrDef kFlatten[] = {{"start_dim", AttrKind::dim, "0", DimBase::at_least_one},
                                {"end_dim", AttrKind::dim, "-1", DimBase::at_least_one}};
constexpr AttrDef kVar[] = {
    {"dim", AttrKind::dims, "all"}, {"correction", AttrKind::integer, "1"}, {"keepdim", AttrKind::flag, "false"}};

// A row reads as a paragraph.
// clang-format off
constexpr OpDef kRows[] = {
    {.op = Op::flatten, .name = "flatten", .family = Family::composite, .operand_names = kX, .attrs = kFlatten,
     .infer = infer_flatten,
     .grad = [](const GradContext& c) -> std::vector<Value> { return {reshape(c.dy, c.x(0).type().shape)}; },
     .expand = [](Operands o, const Attrs&, const Type& r) { return reshape(o[0].value, r.shape); },
     .evaluate = evaluate_flatten, .copies_bits = true, .cost = 0,
     .meaning = "dims start_dim to end_dim become one"},
    {.op = Op::var, .name = "var", .family = Family::reduce, .operand_names = kX, .attrs = kVar,
     .infer = infer_var, .grad = grad_var, .evaluate = evaluate_var, .combiner = Combiner::welford, .cost = 4,
     .meaning = "sum of (x - mean)^2 over dim, divided by max(0, n - correction)"},
};
// clang-format on
static_assert(rows_fill(kRows, kDerived), "a row is missing or out of order");
static_assert(all_well_formed(kRows), "a row lacks a field of its family");

}  // namespace

std::span<const OpDef> derived_rows() { return kRows; }

}  // namespace fusejit::ir
