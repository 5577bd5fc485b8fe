#include "scheduler/lower/expression/expression.h"

#include <algorithm>
#include <cmath>

#include "ir/base/check.h"
#include "scheduler/lower/expression/space.h"

namespace fusejit::scheduler {

using ir::Arg;
using ir::Compare;
using ir::CompareKind;
using ir::Index;
using ir::KernelBuilder;
using ir::Op;

Compare compare(const Index& left, CompareKind kind, std::int64_t right) {
  return {left - Index(left.constant()), kind, right - left.constant()};
}

std::vector<Compare> within(const Index& index, std::int64_t extent) {
  return {compare(index, CompareKind::ge, 0), compare(index, CompareKind::lt, extent)};
}

LogicalIndex broadcast_index(const LogicalIndex& at, const Shape& from, const Shape& operand) {
  LogicalIndex index;
  for (int d = 0; d < operand.rank(); ++d) {
    const int outer = from.rank() - operand.rank() + d;
    index.push_back(operand[d] == 1 ? Index(0) : at[static_cast<std::size_t>(outer)]);
  }
  return index;
}

LogicalIndex simplified(LogicalIndex at, const ir::RangeOf& ranges) {
  for (Index& index : at) index = index.simplify(ranges);
  return at;
}

Index linearise(const LogicalIndex& at, const Shape& shape) {
  Index linear = 0;
  for (int d = 0; d < shape.rank(); ++d) {
    if (shape[d] != 1) linear = linear * shape[d] + at[static_cast<std::size_t>(d)];
  }
  return linear;
}

LogicalIndex delinearise(const Index& linear, const Shape& shape) {
  LogicalIndex at(static_cast<std::size_t>(shape.rank()));
  int outermost = 0;  // first dim above 1: in range, so its quotient needs no remainder
  while (outermost < shape.rank() && shape[outermost] == 1) ++outermost;
  std::int64_t inner = 1;
  for (int d = shape.rank() - 1; d >= 0; --d) {
    const Index quotient = linear / inner;
    at[static_cast<std::size_t>(d)] = shape[d] == 1 ? Index(0) : d == outermost ? quotient : quotient % shape[d];
    inner *= shape[d];
  }
  return at;
}

LogicalIndex reshaped(const LogicalIndex& at, const Shape& from, const Shape& to, const ir::RangeOf& ranges) {
  LogicalIndex result;
  for (int i = 0, j = 0; i < from.rank() || j < to.rank();) {
    const int first_i = i, first_j = j;
    std::int64_t a = i < from.rank() ? from[i++] : 1, b = j < to.rank() ? to[j++] : 1;
    while (a != b) a < b ? a *= from[i++] : b *= to[j++];
    const auto part = [](const Shape& shape, int first, int last) {
      return Shape(shape.dims().subspan(static_cast<std::size_t>(first), static_cast<std::size_t>(last - first)));
    };
    if (i - first_i == 1 && j - first_j == 1) {
      result.push_back(a == 1 ? Index(0) : at[static_cast<std::size_t>(first_i)]);
      continue;
    }
    const Index linear = linearise({at.begin() + first_i, at.begin() + i}, part(from, first_i, i)).simplify(ranges);
    for (Index& index : delinearise(linear, part(to, first_j, j))) result.push_back(std::move(index));
  }
  return result;
}

Arg Expression::def(Op op, std::vector<Arg> args, DType type) {
  flop_ += ir::op_def(op).cost;
  return builder_.def(op, std::move(args), type);
}

Arg Expression::convert(Arg value, DType to) {
  const DType from = builder_.dtype(value);
  if (from == to) return value;
  const bool of_pairs = beside_pairs_ && from == DType::f32 && to == DType::bf16;
  return builder_.def(of_pairs ? Op::round_bf16 : Op::cast, {value}, to);
}

Arg Expression::rounded(Arg value, DType dtype) { return convert(convert(value, dtype), compute_type(dtype)); }

Arg Expression::value(int node, const LogicalIndex& at) {
  for (const Known& known : memo_) {
    if (known.node == node && known.at == at) return known.value;
  }
  const Arg result = hooks_.is_stored(node) ? stored(node, at) : compute(node, at);
  memo_.push_back({node, at, result});
  return result;
}

namespace {

// A quotient or remainder of quotients or remainders: windows of windows, like views of views.
bool is_nested(const Index& index) {
  for (const ir::IndexTerm& outer : index.terms()) {
    if (!outer.atom.inner) continue;
    for (const ir::IndexTerm& inner : outer.atom.inner->terms()) {
      if (inner.atom.inner) return true;
    }
  }
  return false;
}

}  // namespace

Arg Expression::stored(int node, const LogicalIndex& at) {
  const Type& type = graph_.value(node).type();
  std::vector<Index> physical;
  for (const int d : physical_order(type)) physical.push_back(at[static_cast<std::size_t>(d)]);
  const bool through_views = elsewhere_ > 0 || std::any_of(physical.begin(), physical.end(), is_nested);
  const Arg loaded = hooks_.load(node, physical, through_views), wide = convert(loaded, compute_type(type.dtype));
  if (!wide.is_literal()) narrow_.emplace(wide.value, loaded);
  return wide;
}

Arg Expression::stored_value(int node, const LogicalIndex& at) {
  const Arg wide = value(node, at);
  const auto loaded = wide.is_literal() ? narrow_.end() : narrow_.find(wide.value);
  const DType dtype = graph_.value(node).type().dtype;
  return loaded != narrow_.end() && builder_.dtype(loaded->second) == dtype ? loaded->second : convert(wide, dtype);
}

ir::ValueId Expression::stored_pair(int node, const LogicalIndex& first, int dim) {
  const Type& type = graph_.value(node).type();
  if (!hooks_.load_pair || dim < 0 || dim != innermost_dim(type) || !hooks_.is_stored(node)) return -1;
  std::vector<Index> words;
  for (const int d : physical_order(type)) words.push_back(first[static_cast<std::size_t>(d)]);
  words.back() = words.back() / 2;
  return hooks_.load_pair(node, words);
}

Arg Expression::operand(const ir::Operand& operand, const LogicalIndex& at, DType type) {
  if (operand.is_number()) {
    if (operand.is_integer && !is_float(type)) {
      return ir::cast(ir::Scalar::of(operand.integer), type);
    }
    return KernelBuilder::literal(operand.number, type);
  }
  return convert(value(id(operand.value), at), type);
}

Arg Expression::compute(int index, const LogicalIndex& at) {
  const ir::Value& handle = graph_.value(index);
  const ir::Node& node = *handle;
  switch (ir::op_def(node.op).family) {
    case ir::Family::elementwise:
      return elementwise(node, at);
    case ir::Family::source:
      return source(node, at);
    default:
      return elsewhere([&] { return of_other_elements(node, at); });
  }
}

Arg Expression::elsewhere(const std::function<Arg()>& value) {
  ++elsewhere_;
  const Arg result = value();
  --elsewhere_;
  return result;
}

Arg Expression::of_other_elements(const ir::Node& node, const LogicalIndex& at) {
  if (ir::op_def(node.op).family == ir::Family::view) return view(node, at);
  if (node.op == Op::max_pool2d) return max_pool(node, at);
  if (node.op == Op::max_pool2d_grad) return max_pool_grad(node, at);
  if (node.op == Op::max_pool2d_tap) return max_pool_tap(node, at);
  if (node.op == Op::max_pool2d_tap_grad) return max_pool_tap_grad(node, at);
  if (node.op == Op::avg_pool2d || node.op == Op::adaptive_avg_pool2d) return average_pool(node, at);
  if (node.op == Op::avg_pool2d_grad || node.op == Op::adaptive_avg_pool2d_grad) return average_pool_grad(node, at);
  if (node.op == Op::upsample_nearest2d) return upsample_nearest(node, at);
  if (node.op == Op::upsample_nearest2d_grad) return upsample_nearest_grad(node, at);
  if (node.op == Op::upsample_bilinear2d) return upsample_linear(node, at);
  if (node.op == Op::upsample_bilinear2d_grad) return upsample_linear_grad(node, at);
  throw UnsupportedError(
      fmt::format("{}: cannot be lowered to a loop kernel yet (result {}); the graph interpreter runs it",
                  ir::name(node.op), node.type.str()));
}

namespace {

// Narrow integers are computed as i32. Of these ops the result, of operands in range, is in range; others wrap.
bool stays_in_range(Op op) {
  switch (op) {
    case Op::maximum:
    case Op::minimum:
    case Op::fmod:
    case Op::floor:
    case Op::ceil:
    case Op::trunc:
    case Op::round:
    case Op::bitwise_and:
    case Op::bitwise_or:
    case Op::bitwise_xor:
      return true;
    default:
      return false;
  }
}

}  // namespace

Arg Expression::elementwise(const ir::Node& node, const LogicalIndex& at) {
  const ir::OpDef& row = ir::op_def(node.op);
  // The type that the operands meet in: the promotion of all but the condition of `where`.
  DType type = DType::boolean;
  bool first = true;
  for (std::size_t i = node.op == Op::where ? 1 : 0; i < node.operands.size(); ++i) {
    if (node.operands[i].is_number()) continue;
    const DType own = node.operands[i].value.type().dtype;
    type = first ? own : promote(type, own).value_or(type);
    first = false;
  }
  if (first) type = node.type.dtype;
  type = compute_type(type);
  const DType result = compute_type(node.type.dtype);

  const auto get = [&](std::size_t i, DType as) {
    const ir::Operand& given = node.operands[i];
    if (given.is_number()) return operand(given, at, as);
    return operand(given, broadcast_index(at, node.type.shape, given.value.type().shape), as);
  };
  const auto truth = [&](std::size_t i) {
    if (node.operands[i].is_number()) return Arg(ir::Scalar::of(node.operands[i].number != 0));
    const DType own = compute_type(node.operands[i].value.type().dtype);
    const Arg raw = get(i, own);
    return own == DType::boolean ? raw : def(Op::ne, {raw, KernelBuilder::literal(0, own)}, DType::boolean);
  };

  switch (node.op) {  // the odd ones; every other row is one definition
    case Op::cast: {
      return rounded(get(0, type), node.type.dtype);
    }
    case Op::detach:
      return get(0, result);
    case Op::where:
      return def(Op::where, {truth(0), get(1, type), get(2, type)}, type);
    case Op::logical_and:
    case Op::logical_or:
    case Op::logical_xor:
      return def(node.op, {truth(0), truth(1)}, DType::boolean);
    case Op::logical_not:
      return def(node.op, {truth(0)}, DType::boolean);
    case Op::clamp: {
      Arg x = get(0, type);
      const double low = node.attrs.number("min"), high = node.attrs.number("max");
      const auto bound = [&](const char* name, double value) {  // of an int it may be infinite the other way round
        return std::isinf(value) ? KernelBuilder::literal(value, type) : Arg(node.attrs.number_in(name, type));
      };
      if (low != -INFINITY) x = def(Op::maximum, {x, bound("min", low)}, type);
      if (high != INFINITY) x = def(Op::minimum, {x, bound("max", high)}, type);
      return x;
    }
    default:
      break;
  }
  if (type == DType::boolean) {
    if (row.comparison) {
      return def(node.op, {convert(get(0, type), DType::i32), convert(get(1, type), DType::i32)}, DType::boolean);
    }
    const Op logical = node.op == Op::maximum || node.op == Op::bitwise_or    ? Op::logical_or
                       : node.op == Op::minimum || node.op == Op::bitwise_and ? Op::logical_and
                       : node.op == Op::bitwise_xor                           ? Op::logical_xor
                                                                              : Op::logical_not;
    std::vector<Arg> args;
    for (std::size_t i = 0; i < node.operands.size(); ++i) args.push_back(truth(i));
    return def(logical, args, DType::boolean);
  }
  std::vector<Arg> args;
  for (std::size_t i = 0; i < node.operands.size(); ++i) args.push_back(get(i, type));
  if (row.dtype_rule == ir::DTypeRule::to_bool) return def(node.op, args, DType::boolean);
  const Arg value = def(node.op, args, result);
  return is_narrow_int(node.type.dtype) && !stays_in_range(node.op) ? rounded(value, node.type.dtype) : value;
}

Index Expression::as_index(Arg integer) {
  return integer.is_literal() ? Index(ir::cast(integer.literal, DType::i64).i64()) : Index::value(integer.value);
}

Arg Expression::choose(std::vector<Compare> condition, DType type, const std::function<Arg()>& then, Arg otherwise) {
  std::vector<Compare> open;  // comparisons of constants are decided here
  for (Compare& c : condition) {
    if (!c.left.is_constant()) {
      c.left = resolve(c.left);
      open.push_back(compare(c.left, c.kind, c.right));
      continue;
    }
    const std::int64_t left = c.left.constant();
    const bool holds = c.kind == CompareKind::lt   ? left < c.right
                       : c.kind == CompareKind::ge ? left >= c.right
                                                   : left == c.right;
    if (!holds) return otherwise;
  }
  if (open.empty()) return then();
  return builder_.choose(
      open, {type}, [&] { return nested([&] { return std::vector<Arg>{then()}; }); },
      [&] { return std::vector<Arg>{otherwise}; })[0];
}

}  // namespace fusejit::scheduler
