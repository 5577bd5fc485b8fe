// Expression: views, gathers and sources. A view is its row's index map from the result to each operand (ops.md §9).
#include "ir/ops/view.h"

#include <cmath>

#include "ir/base/check.h"
#include "scheduler/lower/expression/expression.h"

namespace fusejit::scheduler {

using ir::Arg;
using ir::Compare;
using ir::CompareKind;
using ir::Index;
using ir::KernelBuilder;
using ir::Op;

namespace {

Arg zero(DType type) { return KernelBuilder::literal(0, type); }

// An operand's index of an element of a view, and when the element is this operand's.
struct MappedIndex {
  LogicalIndex index;
  std::vector<Compare> inside;  // those comparisons that some element of the view does not pass
};

MappedIndex map_index(const std::vector<ir::ViewDim>& map, const LogicalIndex& at, const Shape& view,
                      const Shape& from) {
  MappedIndex mapped;
  for (int d = 0; d < from.rank(); ++d) {
    const ir::ViewDim& dim = map[static_cast<std::size_t>(d)];
    Index scaled = dim.offset;
    std::int64_t least = dim.offset, most = dim.offset;
    if (dim.axis >= 0) {
      scaled = at[static_cast<std::size_t>(dim.axis)] * dim.scale + scaled;
      (dim.scale < 0 ? least : most) += (view[dim.axis] - 1) * dim.scale;
    }
    const Index index = scaled / dim.divide;
    if (least < 0) mapped.inside.push_back(compare(scaled, CompareKind::ge, 0));
    if (most / dim.divide >= from[d]) mapped.inside.push_back(compare(index, CompareKind::lt, from[d]));
    if (dim.divide > 1) mapped.inside.push_back(compare(scaled % dim.divide, CompareKind::eq, 0));
    mapped.index.push_back(from[d] == 1 ? Index(0) : index);  // the only one inside
  }
  return mapped;
}

}  // namespace

Arg Expression::view(const ir::Node& node, const LogicalIndex& at) {
  const DType type = compute_type(node.type.dtype);
  if (node.op == Op::gather) return gather(node, at);
  if (node.op == Op::gather_grad) return gather_grad(node, at);
  if (node.op == Op::one_hot) {
    const LogicalIndex outer(at.begin(), at.end() - 1);
    const Arg wanted = convert(value(id(node.operands[0].value), outer), DType::i64);
    const Arg own = builder_.index(resolve(at.back()), DType::i64);
    const Arg hit = def(Op::eq, {wanted, own}, DType::boolean);
    return type == DType::boolean ? hit : convert(hit, type);
  }
  const ir::ViewMapFn view_map = ir::op_def(node.op).view_map;
  const auto through = [&](std::size_t operand, LogicalIndex index) -> Arg {
    index = simplified(std::move(index), hooks_.ranges);
    if (hooks_.follow && !hooks_.follow(index)) return zero(type);
    return value(id(node.operands[operand].value), index);
  };
  if (!view_map) return through(0, reshaped(at, node.type.shape, node.operands[0].value.type().shape, hooks_.ranges));
  Arg result = ir::view_fill(node, type);
  for (std::size_t i = 0; i < node.operands.size(); ++i) {
    const Shape& from = node.operands[i].value.type().shape;
    if (from.elements() == 0) continue;
    const MappedIndex mapped = map_index(view_map(node, i), at, node.type.shape, from);
    result = choose(
        mapped.inside, type, [&] { return through(i, mapped.index); }, result);
  }
  return result;
}

Arg Expression::gather(const ir::Node& node, const LogicalIndex& at) {
  const auto axis = static_cast<std::size_t>(node.attrs.integer("dim"));
  const ir::Value &x = node.operands[0].value, &index = node.operands[1].value;
  const DType type = compute_type(node.type.dtype);
  const Index wanted = as_index(value(id(index), at));
  LogicalIndex inner = at;
  inner[axis] = wanted;
  const Arg outside = is_float(type) ? KernelBuilder::literal(NAN, type) : zero(type);
  return choose(
      within(wanted, x.type().shape[static_cast<int>(axis)]), type, [&] { return value(id(x), inner); }, outside);
}

// Compare and accumulate: no scatter (kernel-ir.md §4). Terms are added in ascending order of g along `dim`.
Arg Expression::gather_grad(const ir::Node& node, const LogicalIndex& at) {
  const auto axis = static_cast<std::size_t>(node.attrs.integer("dim"));
  const ir::Value &g = node.operands[0].value, &index = node.operands[1].value;
  const Shape& from = g.type().shape;
  const DType type = compute_type(node.type.dtype);
  std::vector<Compare> covered;
  for (int d = 0; d < from.rank(); ++d) {
    if (static_cast<std::size_t>(d) != axis && from[d] < node.type.shape[d]) {
      covered.push_back(compare(at[static_cast<std::size_t>(d)], CompareKind::lt, from[d]));
    }
  }
  const auto term = [&](const Index& k) {
    LogicalIndex inner = at;
    inner[axis] = k;
    const Arg target = convert(value(id(index), inner), DType::i64);
    const Arg own = builder_.index(resolve(at[axis]), DType::i64);
    const Arg hit = def(Op::eq, {target, own}, DType::boolean);
    return def(Op::where, {hit, value(id(g), inner), zero(type)}, type);
  };
  return choose(
      covered, type,
      [&]() -> Arg {
        if (from[static_cast<int>(axis)] == 1) return term(0);
        return builder_.reduce({Index(0)}, {Index(from[static_cast<int>(axis)])}, ir::Binding::none,
                               {ir::Combiner::add}, {type},
                               [&](Index k) { return nested([&] { return std::vector<Arg>{term(k)}; }); })[0];
      },
      zero(type));
}

Arg Expression::source(const ir::Node& node, const LogicalIndex& at) {
  const DType type = compute_type(node.type.dtype);
  switch (node.op) {
    case Op::full:
      return node.attrs.number_in("value", type);
    case Op::iota: {
      const Index along = at[static_cast<std::size_t>(node.attrs.integer("dim"))];
      return rounded(builder_.index(resolve(along), type), node.type.dtype);
    }
    case Op::rand:
      return random(node, at);
    default:
      throw InternalError(fmt::format("source {} has to be stored", ir::name(node.op)));
  }
}

// ops.md §11: element e takes word e mod 4 of counter e / 4.
Arg Expression::random(const ir::Node& node, const LogicalIndex& at) {
  const DType type = compute_type(node.type.dtype);
  const Index element = resolve(linearise(at, node.type.shape).simplify(hooks_.ranges));
  const Arg seed = value(id(node.operands[0].value), {});
  const Arg counter = builder_.index(element / 4, DType::i64);
  const Arg stream = ir::Scalar::of(node.attrs.integer("stream"));
  const std::vector<ir::ValueId> words = builder_.philox(counter, stream, seed);
  flop_ += 80;
  const Arg lane = builder_.index(element % 4, DType::i32);
  Arg word = words[3];
  for (int w = 2; w >= 0; --w) {
    const Arg hit = def(Op::eq, {lane, Arg(ir::Scalar::of(w))}, DType::boolean);
    word = def(Op::where, {hit, words[static_cast<std::size_t>(w)], word}, DType::u32);
  }
  const Arg high = def(Op::shr, {word, Arg(ir::Scalar::of(std::uint32_t{8}))}, DType::u32);
  const Arg uniform = def(Op::mul, {convert(high, type), KernelBuilder::literal(0x1p-24, type)}, type);
  if (node.type.dtype == type) return uniform;
  // f16 and bf16 are rounded toward zero, so that u < 1: the bits beyond their significand are cut. Below 2^-14, where
  // f16 is subnormal, u has no such bits.
  const Arg mask = ir::Scalar::of(std::uint32_t{node.type.dtype == DType::f16 ? 0xffffe000u : 0xffff0000u});
  const Arg bits = def(Op::bitwise_and, {def(Op::bits, {uniform}, DType::u32), mask}, DType::u32);
  return def(Op::from_bits, {bits}, type);
}

}  // namespace fusejit::scheduler
