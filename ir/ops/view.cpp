// Views (ops.md §9): values copied bit by bit. A view is its `view_map`; reshape keeps the row-major order.
#include "ir/ops/view.h"

#include <algorithm>

#include "ir/base/at.h"
#include "ir/base/check.h"
#include "ir/infer.h"
#include "ir/interp.h"
#include "ir/ops/compose.h"
#include "ir/ops/oracle/index.h"
#include "ir/ops/rows.h"
#include "ir/passes/grad.h"

namespace fusejit::ir {
namespace {

using compose::Dims;
using Sizes = std::span<const std::int64_t>;

Dims list(Sizes values) { return {values.begin(), values.end()}; }

Type like_x(const InferContext& c, Sizes dims) { return {c.type(0).dtype, shape_from(c, dims)}; }

void require_length(const InferContext& c, std::string_view attr, int rank) {
  if (static_cast<int>(c.attrs.ints(attr).size()) != rank)
    c.fail(fmt::format("{} has {} numbers, the rank is {}", attr, c.attrs.ints(attr).size(), rank));
}

// One -1 in the shape is what remains of the element count.
void complete_reshape(std::span<const Operand> operands, std::vector<Attr>& values) {
  Dims& shape = values[0].ints;
  if (std::count(shape.begin(), shape.end(), -1) != 1) return;
  std::int64_t known = 1;
  for (std::int64_t d : shape)
    if (d != -1) {
      if (d <= 0 || known > (std::int64_t{1} << 40) / d) return;
      known *= d;
    }
  const std::int64_t count = operands[0].value.type().elements();
  if (count % known == 0) *std::find(shape.begin(), shape.end(), -1) = count / known;
}

Type infer_reshape(const InferContext& c) {
  const auto dims = c.attrs.ints("shape");
  if (std::count(dims.begin(), dims.end(), -1)) c.fail("the -1 in shape cannot be resolved");
  const Type type = like_x(c, dims);
  if (type.elements() != c.type(0).elements())
    c.fail(fmt::format("shape {} has {} elements, x has {}", type.shape.str(), type.elements(), c.type(0).elements()));
  return type;
}

Type infer_permute(const InferContext& c) {
  const Shape& x = c.type(0).shape;
  require_length(c, "dims", x.rank());
  Dims sizes;
  for (std::int64_t d : c.attrs.ints("dims")) sizes.push_back(x[static_cast<int>(d)]);
  return like_x(c, sizes);
}

Type infer_squeeze(const InferContext& c) {
  const Shape& x = c.type(0).shape;
  const auto dims = c.attrs.ints("dim");
  Dims sizes;
  for (std::int64_t d : dims)
    if (x[static_cast<int>(d)] != 1) c.fail(fmt::format("dim {} has size {}, not 1", d, x[static_cast<int>(d)]));
  for (int d = 0; d < x.rank(); ++d)
    if (std::find(dims.begin(), dims.end(), d) == dims.end()) sizes.push_back(x[d]);
  return like_x(c, sizes);
}

Type infer_unsqueeze(const InferContext& c) {
  Dims sizes = list(c.type(0).shape.dims());
  sizes.insert(sizes.begin() + c.attrs.integer("dim"), 1);
  return like_x(c, sizes);
}

Type infer_expand(const InferContext& c) {
  const Type type = like_x(c, c.attrs.ints("shape"));
  const Shape& x = c.type(0).shape;
  bool fits = type.shape.rank() >= x.rank();
  for (int d = 1; fits && d <= x.rank(); ++d)
    fits = x[x.rank() - d] == type.shape[type.shape.rank() - d] || x[x.rank() - d] == 1;
  if (!fits) c.fail(fmt::format("x does not expand to {}", type.shape.str()));
  return type;
}

Type infer_slice(const InferContext& c) {
  const Shape& x = c.type(0).shape;
  const auto starts = c.attrs.ints("starts"), stops = c.attrs.ints("stops"), steps = c.attrs.ints("steps");
  for (std::string_view attr : {"starts", "stops", "steps"}) require_length(c, attr, x.rank());
  Dims sizes;
  for (int d = 0; d < x.rank(); ++d) {
    if (steps[at(d)] < 1) c.fail(fmt::format("step {} of dim {} is below 1", steps[at(d)], d));
    if (starts[at(d)] < 0 || starts[at(d)] > stops[at(d)] || stops[at(d)] > x[d])
      c.fail(fmt::format("{}:{} is no range of dim {}, which has size {}", starts[at(d)], stops[at(d)], d, x[d]));
    sizes.push_back((stops[at(d)] - starts[at(d)] + steps[at(d)] - 1) / steps[at(d)]);
  }
  return like_x(c, sizes);
}

Type infer_unslice(const InferContext& c) {
  const Shape& g = c.type(0).shape;
  const Type type = like_x(c, c.attrs.ints("shape"));
  const auto starts = c.attrs.ints("starts"), steps = c.attrs.ints("steps");
  for (std::string_view attr : {"shape", "starts", "steps"}) require_length(c, attr, g.rank());
  for (int d = 0; d < g.rank(); ++d) {
    if (steps[at(d)] < 1) c.fail(fmt::format("step {} of dim {} is below 1", steps[at(d)], d));
    const std::int64_t room = type.shape[d] - 1 - starts[at(d)];
    const bool fits = starts[at(d)] >= 0 && starts[at(d)] <= type.shape[d] &&
                      (g[d] == 0 || (room >= 0 && g[d] - 1 <= room / steps[at(d)]));
    if (!fits)
      c.fail(fmt::format("dim {} of g does not fit into {} from {} in steps of {}", d, type.shape[d], starts[at(d)],
                         steps[at(d)]));
  }
  return type;
}

Type infer_pad(const InferContext& c) {
  const Shape& x = c.type(0).shape;
  const auto low = c.attrs.ints("low"), high = c.attrs.ints("high");
  for (std::string_view attr : {"low", "high"}) require_length(c, attr, x.rank());
  Dims sizes;
  for (int d = 0; d < x.rank(); ++d) {
    if (low[at(d)] < 0 || high[at(d)] < 0) c.fail(fmt::format("dim {} is padded by a negative number", d));
    sizes.push_back(low[at(d)] + x[d] + high[at(d)]);
  }
  const DType dtype = c.type(0).dtype;
  if (!c.attrs[2].in(dtype)) {
    if (dtype == DType::boolean) c.fail("value must be 0 or 1");
    const bool whole = c.attrs[2].in(DType::i64).has_value();
    c.fail(whole ? fmt::format("value is out of range for {}", name(dtype)) : "value must be an integer");
  }
  return like_x(c, sizes);
}

Type infer_concat(const InferContext& c) {
  const Type& first = c.type(0);
  const int dim = static_cast<int>(c.attrs.integer("dim"));
  Dims sizes = list(first.shape.dims());
  for (std::size_t i = 1; i < c.operands.size(); ++i) {
    const Type& next = c.type(i);
    bool equal = next.shape.rank() == first.shape.rank();
    for (int d = 0; equal && d < first.shape.rank(); ++d) equal = d == dim || next.shape[d] == first.shape[d];
    if (!equal) c.fail(fmt::format("operands 0 and {} differ in another dim than {}", i, dim));
    if (next.dtype != first.dtype)
      c.fail(fmt::format("operands 0 and {} are {} and {}", i, name(first.dtype), name(next.dtype)));
    sizes[at(dim)] += next.shape[dim];
  }
  return like_x(c, sizes);
}

Type infer_flip(const InferContext& c) { return {c.type(0).dtype, c.type(0).shape}; }

using Map = std::vector<ViewDim>;

const Shape& operand_shape(const Node& view, std::size_t operand = 0) {
  return view.operands[operand].value.type().shape;
}
// One entry per dim of operand 0, each `dim(d)`.
template <class F>
Map each_dim(const Node& view, F dim) {
  Map map;
  for (int d = 0; d < operand_shape(view).rank(); ++d) map.push_back(dim(d));
  return map;
}
bool holds(Sizes dims, int d) { return std::find(dims.begin(), dims.end(), d) != dims.end(); }

Map map_permute(const Node& view, std::size_t) {
  const auto dims = view.attrs.ints("dims");
  return each_dim(view, [&](int d) {
    return ViewDim{.axis = static_cast<int>(std::find(dims.begin(), dims.end(), d) - dims.begin())};
  });
}
Map map_squeeze(const Node& view, std::size_t) {
  int axis = 0;
  return each_dim(view, [&](int d) { return ViewDim{.axis = holds(view.attrs.ints("dim"), d) ? -1 : axis++}; });
}
Map map_unsqueeze(const Node& view, std::size_t) {
  return each_dim(view, [&](int d) { return ViewDim{.axis = d < view.attrs.integer("dim") ? d : d + 1}; });
}
Map map_expand(const Node& view, std::size_t) {
  const Shape& x = operand_shape(view);
  return each_dim(view, [&](int d) { return ViewDim{.axis = x[d] == 1 ? -1 : d + view.type.shape.rank() - x.rank()}; });
}
Map map_slice(const Node& view, std::size_t) {
  const auto starts = view.attrs.ints("starts"), steps = view.attrs.ints("steps");
  return each_dim(view, [&](int d) { return ViewDim{.axis = d, .scale = steps[at(d)], .offset = starts[at(d)]}; });
}
Map map_unslice(const Node& view, std::size_t) {
  const auto starts = view.attrs.ints("starts"), steps = view.attrs.ints("steps");
  return each_dim(view, [&](int d) { return ViewDim{.axis = d, .offset = -starts[at(d)], .divide = steps[at(d)]}; });
}
Map map_pad(const Node& view, std::size_t) {
  const auto low = view.attrs.ints("low");
  return each_dim(view, [&](int d) { return ViewDim{.axis = d, .offset = -low[at(d)]}; });
}
Map map_concat(const Node& view, std::size_t operand) {
  const auto along = static_cast<int>(view.attrs.integer("dim"));
  std::int64_t start = 0;
  for (std::size_t before = 0; before < operand; ++before) start += operand_shape(view, before)[along];
  return each_dim(view, [&](int d) { return ViewDim{.axis = d, .offset = d == along ? -start : 0}; });
}
Map map_flip(const Node& view, std::size_t) {
  return each_dim(view, [&](int d) {
    const bool flipped = holds(view.attrs.ints("dims"), d);
    return ViewDim{.axis = d, .scale = flipped ? -1 : 1, .offset = flipped ? operand_shape(view)[d] - 1 : 0};
  });
}

// The position in an operand of `from` of the element that the map names, or -1: it is not of this operand.
std::int64_t position_in(const Shape& from, const Map& map, Sizes out) {
  std::int64_t position = 0;
  for (int d = 0; d < from.rank(); ++d) {
    const ViewDim& dim = map[at(d)];
    const std::int64_t scaled = (dim.axis < 0 ? 0 : out[at(dim.axis)] * dim.scale) + dim.offset;
    if (scaled % dim.divide != 0 || scaled < 0 || scaled / dim.divide >= from[d]) return -1;
    position = position * from[d] + scaled / dim.divide;
  }
  return position;
}

void evaluate_map(const EvalContext& c) {
  std::vector<Map> maps;
  for (std::size_t i = 0; i < c.operands.size(); ++i) maps.push_back(op_def(c.node.op).view_map(c.node, i));
  const Scalar outside = view_fill(c.node, c.result.type.dtype);
  each_index(c.result.type.shape, [&](std::int64_t position, Sizes out) {
    Scalar element = outside;
    for (std::size_t i = 0; i < maps.size(); ++i) {
      const std::int64_t from = position_in(c.operands[i]->type.shape, maps[i], out);
      if (from >= 0) element = c.operands[i]->at(from);
    }
    c.result.set(position, element);
  });
}

void evaluate_copy(const EvalContext& c) { c.result.bytes = c.operands[0]->bytes; }

using Grads = std::vector<Value>;

Grads grad_reshape(const GradContext& g) { return {compose::reshape(g.dy, g.x(0).type().shape)}; }
Grads grad_permute(const GradContext& g) {
  const auto dims = g.y->attrs.ints("dims");
  Dims inverse(dims.size());
  for (std::size_t i = 0; i < dims.size(); ++i)
    inverse[static_cast<std::size_t>(dims[i])] = static_cast<std::int64_t>(i);
  return {compose::permute(g.dy, inverse)};
}
Value slice(const Value& x, const Dims& starts, const Dims& stops, const Dims& steps) {
  return build(Op::slice, {x}, {{"starts", Sizes(starts)}, {"stops", Sizes(stops)}, {"steps", Sizes(steps)}});
}
Grads grad_slice(const GradContext& g) {
  const Attrs& a = g.y->attrs;
  return {build(Op::unslice, {g.dy},
                {{"shape", g.x(0).type().shape.dims()}, {"starts", a.ints("starts")}, {"steps", a.ints("steps")}})};
}
Grads grad_unslice(const GradContext& g) {
  const Dims starts = list(g.y->attrs.ints("starts")), steps = list(g.y->attrs.ints("steps"));
  Dims stops = starts;
  for (std::size_t d = 0; d < stops.size(); ++d) {
    const std::int64_t size = g.x(0).type().shape[static_cast<int>(d)];
    if (size > 0) stops[d] += (size - 1) * steps[d] + 1;
  }
  return {slice(g.dy, starts, stops, steps)};
}
Grads grad_pad(const GradContext& g) {
  const Dims low = list(g.y->attrs.ints("low"));
  Dims stops = low;
  for (std::size_t d = 0; d < low.size(); ++d) stops[d] += g.x(0).type().shape[static_cast<int>(d)];
  return {slice(g.dy, low, stops, Dims(low.size(), 1))};
}
Grads grad_concat(const GradContext& g) {
  const auto dim = static_cast<std::size_t>(g.y->attrs.integer("dim"));
  Dims starts(g.y.type().shape.dims().size(), 0);
  Grads out(g.y->operands.size());
  for (std::size_t i = 0; i < out.size(); ++i) {
    Dims stops = list(g.y.type().shape.dims());
    stops[dim] = starts[dim] + g.x(i).type().shape[static_cast<int>(dim)];
    if (g.wants(i)) out[i] = slice(g.dy, starts, stops, Dims(starts.size(), 1));
    starts[dim] = stops[dim];
  }
  return out;
}

constexpr std::string_view kG[] = {"g"};
constexpr AttrDef kShape[] = {{"shape", AttrKind::ints}};
constexpr AttrDef kPermute[] = {{"dims", AttrKind::dims}};
constexpr AttrDef kSqueeze[] = {{"dim", AttrKind::dims, "unit"}};
constexpr AttrDef kUnsqueeze[] = {{"dim", AttrKind::dim, "", DimBase::rank_plus_one}};
constexpr AttrDef kSlice[] = {{"starts", AttrKind::ints}, {"stops", AttrKind::ints}, {"steps", AttrKind::ints}};
constexpr AttrDef kUnslice[] = {{"shape", AttrKind::ints}, {"starts", AttrKind::ints}, {"steps", AttrKind::ints}};
constexpr AttrDef kPad[] = {{"low", AttrKind::ints}, {"high", AttrKind::ints}, {"value", AttrKind::number, "0"}};
constexpr AttrDef kConcat[] = {{"dim", AttrKind::dim}};

constexpr OpDef kRows[] = {
    {.op = Op::reshape,
     .name = "reshape",
     .family = Family::view,
     .attrs = kShape,
     .infer = infer_reshape,
     .complete = complete_reshape,
     .grad = grad_reshape,
     .evaluate = evaluate_copy,
     .copies_bits = true,
     .cost = 0,
     .meaning = "the same elements in row-major order, in another shape"},
    {.op = Op::permute,
     .name = "permute",
     .family = Family::view,
     .attrs = kPermute,
     .infer = infer_permute,
     .grad = grad_permute,
     .evaluate = evaluate_map,
     .view_map = map_permute,
     .copies_bits = true,
     .cost = 0,
     .meaning = "dim k of the result is dim dims[k] of x"},
    {.op = Op::squeeze,
     .name = "squeeze",
     .family = Family::view,
     .attrs = kSqueeze,
     .infer = infer_squeeze,
     .grad = grad_reshape,
     .evaluate = evaluate_map,
     .view_map = map_squeeze,
     .copies_bits = true,
     .cost = 0,
     .meaning = "without the dims, each of size 1"},
    {.op = Op::unsqueeze,
     .name = "unsqueeze",
     .family = Family::view,
     .attrs = kUnsqueeze,
     .infer = infer_unsqueeze,
     .grad = grad_reshape,
     .evaluate = evaluate_map,
     .view_map = map_unsqueeze,
     .copies_bits = true,
     .cost = 0,
     .meaning = "with a dim of size 1 more"},
    {.op = Op::expand,
     .name = "expand",
     .family = Family::view,
     .attrs = kShape,
     .infer = infer_expand,
     .grad = [](const GradContext& g) { return Grads{compose::sum_to(g.dy, g.x(0).type().shape)}; },
     .evaluate = evaluate_map,
     .view_map = map_expand,
     .copies_bits = true,
     .cost = 0,
     .meaning = "sizes 1 grow, new dims on the left"},
    {.op = Op::slice,
     .name = "slice",
     .family = Family::view,
     .attrs = kSlice,
     .infer = infer_slice,
     .grad = grad_slice,
     .evaluate = evaluate_map,
     .view_map = map_slice,
     .copies_bits = true,
     .cost = 0,
     .meaning = "elements starts, starts + steps, ... below stops of every dim"},
    {.op = Op::unslice,
     .name = "unslice",
     .family = Family::view,
     .operand_names = kG,
     .attrs = kUnslice,
     .infer = infer_unslice,
     .grad = grad_unslice,
     .evaluate = evaluate_map,
     .view_map = map_unslice,
     .copies_bits = true,
     .cost = 0,
     .meaning = "zeros of a shape with g at starts + o * steps"},
    {.op = Op::pad,
     .name = "pad",
     .family = Family::view,
     .attrs = kPad,
     .infer = infer_pad,
     .grad = grad_pad,
     .evaluate = evaluate_map,
     .view_map = map_pad,
     .copies_bits = true,
     .cost = 0,
     .meaning = "x with `value` around it; low and high in the order of the dims"},
    {.op = Op::concat,
     .name = "concat",
     .family = Family::view,
     .min_operands = 1,
     .max_operands = 64,
     .attrs = kConcat,
     .infer = infer_concat,
     .grad = grad_concat,
     .evaluate = evaluate_map,
     .view_map = map_concat,
     .copies_bits = true,
     .cost = 0,
     .meaning = "the operands one after the other along a dim"},
    {.op = Op::flip,
     .name = "flip",
     .family = Family::view,
     .attrs = kPermute,
     .infer = infer_flip,
     .grad =
         [](const GradContext& g) {
           return Grads{build(Op::flip, {g.dy}, {{"dims", g.y->attrs.ints("dims")}})};
         },
     .evaluate = evaluate_map,
     .view_map = map_flip,
     .copies_bits = true,
     .cost = 0,
     .meaning = "reversed along the dims"},
};
static_assert(rows_fill(kRows, kView), "a row is missing or out of order");
static_assert(all_well_formed(kRows), "a row lacks a field of its family");

}  // namespace

std::span<const OpDef> view_rows() { return kRows; }

Scalar view_fill(const Node& view, DType type) {
  for (const AttrDef& attr : view.attrs.schema())
    if (attr.name == "value") return view.attrs.number_in("value", type);
  return {type, 0};
}

bool view_keeps_order(const Node& view) {
  const ViewMapFn view_map = op_def(view.op).view_map;
  if (!view_map) return true;
  const Shape& from = operand_shape(view);
  const Map map = view_map(view, 0);
  int outer = -1;  // axis of the last dim that counts
  for (int d = 0; d < from.rank(); ++d) {
    if (from[d] == 1) continue;
    const ViewDim& dim = map[at(d)];
    if (dim.axis <= outer || dim.scale != 1 || dim.offset != 0 || dim.divide != 1) return false;
    outer = dim.axis;
  }
  return true;
}

}  // namespace fusejit::ir
