// A variance that is written out by hand is a variance: mean((x - mean(x))^2) = var(x) without correction, over the
// same dims. Layer and batch norm of tutorials are written so. As `var` it is summed in one pass with the mean, as in
// the norm ops; its bits differ within what docs/ops.md promises of a variance.
#include <algorithm>

#include "ir/passes/made_by.h"
#include "ir/passes/passes.h"
#include "ir/rewrite.h"

namespace fusejit::ir {
namespace {

// What is squared; empty if nothing is.
Value squared(const Value& value) {
  const std::vector<Operand>& o = value->operands;
  if (value->op == Op::square) return o[0].value;
  if (value->op == Op::mul && o[0].value && o[0].value == o[1].value) return o[0].value;
  const bool is_power = value->op == Op::pow && o[0].value && o[1].is_number() && o[1].number == 2;
  return is_power ? o[0].value : Value();
}

// `value` is the mean of x over `dims`, of the shape that meets x: one element where x has many.
bool is_mean_of(Value value, const Value& x, std::span<const std::int64_t> dims) {
  const Shape& shape = value.type().shape;
  const Shape& whole = x.type().shape;
  if (shape.rank() != whole.rank()) return false;
  for (int d = 0; d < shape.rank(); ++d) {
    const bool reduced = std::find(dims.begin(), dims.end(), d) != dims.end();
    if (shape[d] != (reduced ? 1 : whole[d])) return false;
  }
  while (value->op == Op::reshape) value = value->operands[0].value;
  return value->op == Op::mean && value->operands[0].value == x && std::ranges::equal(value->attrs.ints("dim"), dims);
}

}  // namespace

Graph find_variances(const Graph& graph) {
  return rewrite(graph, [](const Node& node, const std::vector<Operand>& operands) -> Value {
    if (node.op != Op::mean || !operands[0].value) return {};
    const Value centred = squared(operands[0].value);
    if (!centred || !made_by(centred, Op::sub) || !centred->operands[0].value || !centred->operands[1].value) return {};
    const Value x = centred->operands[0].value;
    const auto dims = node.attrs.ints("dim");
    if (x.type().shape != operands[0].value.type().shape || x.type().dtype != node.type.dtype ||
        !is_mean_of(centred->operands[1].value, x, dims))
      return {};
    return build_as(node.type, Op::var, {x},
                    {{"dim", dims}, {"correction", std::int64_t{0}}, {"keepdim", node.attrs.flag("keepdim")}},
                    node.region);
  });
}

}  // namespace fusejit::ir
