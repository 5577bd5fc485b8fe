// Composite rows -> primitive ops, region by region: what a node of a region expands to is in that region too.
#include <algorithm>

#include "ir/passes/passes.h"
#include "ir/passes/recompute.h"
#include "ir/rewrite.h"

namespace fusejit::ir {
namespace {

// `value` with its bytes in `layout`; `is_fresh` if nobody else has seen the node yet.
Value in_layout(const Value& value, Layout layout, std::uint32_t region, bool is_fresh) {
  if (value.type().layout == layout) return value;
  if (is_fresh) return build_in(layout, value->op, value->operands, value->attrs, region);
  const Value cast = build(Op::cast, {value}, {{"dtype", value.type().dtype}});
  return build_in(layout, Op::cast, {value}, cast->attrs, region);
}

// The node's meaning in other ops, or an empty Value if it is primitive.
Value expansion(const Node& node, const std::vector<Operand>& operands) {
  const OpDef& row = op_def(node.op);
  if (!row.expand) return {};
  Value value = row.expand(operands, node.attrs, node.type);
  if (!value) return {};
  std::vector<Value> boundary;
  bool is_operand = false;
  for (const Operand& operand : operands) {
    boundary.push_back(operand.value);
    is_operand |= operand.value == value;
  }
  if (node.region != 0) value = recompute_in_region(value, node.region, boundary);
  return in_layout(value, node.type.layout, node.region, !is_operand);
}

// Whether a walk could find anything; spares the last one, which would only copy the graph.
bool may_expand(const Graph& graph) {
  return std::any_of(graph.nodes().begin(), graph.nodes().end(),
                     [](const Value& node) { return op_def(node->op).expand != nullptr; });
}

}  // namespace

Graph expand(const Graph& graph) {
  // An expansion may hold composites itself, so the walk is repeated until nothing is left to expand.
  Graph current = graph;
  for (bool changed = true; changed && may_expand(current);) {
    changed = false;
    current = rewrite(current, expansion, &changed);
  }
  return current;
}

}  // namespace fusejit::ir
