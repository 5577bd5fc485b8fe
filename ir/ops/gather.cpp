// gather, its gradient and one_hot (ops.md §9): reads at places that are data.
#include <algorithm>
#include <limits>

#include "ir/base/check.h"
#include "ir/infer.h"
#include "ir/interp.h"
#include "ir/ops/oracle/index.h"
#include "ir/ops/rows.h"
#include "ir/passes/grad.h"

namespace fusejit::ir {
namespace {

void require_index(const InferContext& c, std::size_t i) {
  if (!is_int(c.type(i).dtype)) c.fail(fmt::format("index must be int, it is {}", name(c.type(i).dtype)));
}

// index has the rank of `shape` and sizes within it but for `dim`.
void require_within(const InferContext& c, const Shape& shape) {
  require_index(c, 1);
  const Shape& index = c.type(1).shape;
  const int dim = static_cast<int>(c.attrs.integer("dim"));
  bool fits = index.rank() == shape.rank();
  for (int d = 0; fits && d < shape.rank(); ++d) fits = d == dim || index[d] <= shape[d];
  if (!fits) c.fail(fmt::format("index must have the rank of {} and sizes within it but for dim {}", shape.str(), dim));
}

Type infer_gather(const InferContext& c) {
  require_within(c, c.type(0).shape);
  return {c.type(0).dtype, c.type(1).shape};
}

Type infer_gather_grad(const InferContext& c) {
  const Shape shape = shape_from(c, c.attrs.ints("shape"));
  if (c.type(0).shape != c.type(1).shape) c.fail("g and index must have one shape");
  require_within(c, shape);
  return {c.type(0).dtype, shape};
}

Type infer_one_hot(const InferContext& c) {
  require_index(c, 0);
  if (c.attrs.integer("num_classes") < 0) c.fail("num_classes must be at least 0");
  std::vector<std::int64_t> sizes(c.type(0).shape.begin(), c.type(0).shape.end());
  sizes.push_back(c.attrs.integer("num_classes"));
  return {c.attrs.dtype("dtype"), shape_from(c, sizes)};
}

// The place in `shape` that element `position` of index names, or -1.
std::int64_t place(const EvalContext& c, const Shape& shape, std::int64_t position, std::span<const std::int64_t> at) {
  const auto dim = static_cast<std::size_t>(c.node.attrs.integer("dim"));
  std::array<std::int64_t, kMaxRank> index{};
  std::copy(at.begin(), at.end(), index.begin());
  index[dim] = cast(c.operands[1]->at(position), DType::i64).i64();
  if (index[dim] < 0 || index[dim] >= shape[static_cast<int>(dim)]) return -1;
  return row_major(shape, {index.data(), at.size()});
}

void evaluate_gather(const EvalContext& c) {
  const Array& x = *c.operands[0];
  const DType dtype = c.result.type.dtype;
  const Scalar missing =
      is_float(dtype) ? cast(Scalar::of(std::numeric_limits<double>::quiet_NaN()), dtype) : Scalar{dtype, 0};
  each_index(c.result.type.shape, [&](std::int64_t position, std::span<const std::int64_t> at) {
    const std::int64_t source = place(c, x.type.shape, position, at);
    c.result.set(position, source < 0 ? missing : x.at(source));
  });
}

void evaluate_gather_grad(const EvalContext& c) {
  const Array& g = *c.operands[0];
  const DType dtype = c.result.type.dtype;
  const auto count = static_cast<std::size_t>(c.result.type.elements());
  std::vector<double> sums(count);
  std::vector<std::uint64_t> whole(count);
  each_index(g.type.shape, [&](std::int64_t position, std::span<const std::int64_t> at) {
    const std::int64_t target = place(c, c.result.type.shape, position, at);
    if (target < 0) return;
    if (is_float(dtype))
      sums[static_cast<std::size_t>(target)] += g.at(position).as_double();
    else
      whole[static_cast<std::size_t>(target)] += cast(g.at(position), DType::i64).bits;
  });
  for (std::size_t i = 0; i < count; ++i)
    c.result.set(static_cast<std::int64_t>(i),
                 cast(is_float(dtype) ? Scalar::of(sums[i]) : Scalar{DType::i64, whole[i]}, dtype));
}

void evaluate_one_hot(const EvalContext& c) {
  const std::int64_t classes = c.node.attrs.integer("num_classes");
  for (std::int64_t i = 0; i < c.result.type.elements(); ++i) {
    const bool hot = cast(c.operands[0]->at(i / classes), DType::i64).i64() == i % classes;
    c.result.set(i, cast(Scalar::of(hot), c.result.type.dtype));
  }
}

// What was dropped has no gradient, where a plain gather would read NaN.
std::vector<Value> grad_gather_grad(const GradContext& g) {
  const std::int64_t dim = g.y->attrs.integer("dim");
  const std::int64_t size = g.y.type().shape[static_cast<int>(dim)];
  const Value& given = g.x(1);
  const Value index = holds(given.type().dtype, size) ? given : build(Op::cast, {given}, {{"dtype", DType::i64}});
  const Value low = build(Op::ge, {index, 0}), high = build(Op::lt, {index, size});
  const Value read = build(Op::gather, {g.dy, index}, {{"dim", dim}});
  return {build(Op::where, {build(Op::logical_and, {low, high}), read, 0.0}), Value()};
}

constexpr std::string_view kXIndex[] = {"x", "index"};
constexpr std::string_view kGIndex[] = {"g", "index"};
constexpr std::string_view kIndex[] = {"index"};
constexpr AttrDef kGatherAttrs[] = {{"dim", AttrKind::dim}};
constexpr AttrDef kGatherGrad[] = {{"dim", AttrKind::dim}, {"shape", AttrKind::ints}};
constexpr AttrDef kOneHot[] = {{"num_classes", AttrKind::integer}, {"dtype", AttrKind::dtype, "i64"}};

constexpr OpDef kRows[] = {
    {.op = Op::gather,
     .name = "gather",
     .family = Family::view,
     .min_operands = 2,
     .max_operands = 2,
     .operand_names = kXIndex,
     .attrs = kGatherAttrs,
     .infer = infer_gather,
     .grad =
         [](const GradContext& g) {
           return std::vector<Value>{build(Op::gather_grad, {g.dy, g.x(1)},
                                           {{"dim", g.y->attrs.integer("dim")}, {"shape", g.x(0).type().shape.dims()}}),
                                     Value()};
         },
     .evaluate = evaluate_gather,
     .meaning = "x at index along a dim; out of range: NaN, or 0 for ints"},
    {.op = Op::gather_grad,
     .name = "gather_grad",
     .family = Family::view,
     .min_operands = 2,
     .max_operands = 2,
     .operand_names = kGIndex,
     .attrs = kGatherGrad,
     .infer = infer_gather_grad,
     .grad = grad_gather_grad,
     .evaluate = evaluate_gather_grad,
     .meaning = "zeros of a shape, each g added at its index; out of range: dropped"},
    {.op = Op::one_hot,
     .name = "one_hot",
     .family = Family::view,
     .operand_names = kIndex,
     .attrs = kOneHot,
     .infer = infer_one_hot,
     .no_gradient = true,
     .evaluate = evaluate_one_hot,
     .meaning = "1 at the index along a new last dim, else 0; out of range: all 0"},
};
static_assert(rows_fill(kRows, kGather), "a row is missing or out of order");
static_assert(all_well_formed(kRows), "a row lacks a field of its family");

}  // namespace

std::span<const OpDef> gather_rows() { return kRows; }

}  // namespace fusejit::ir
