// Composite rows -> primitive ops, region by region: what a node of a region expands to is in that region too.
#include <unordered_map>

#include "ir/passes/passes.h"
#include "ir/passes/recompute.h"

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

// One level: an expansion may hold composites itself.
bool expand_once(const Graph& graph, Graph& result) {
  std::unordered_map<const Node*, Value> replaced;
  bool changed = false;
  const auto now = [&](const Value& value) {
    const auto found = replaced.find(value.get());
    return found == replaced.end() ? value : found->second;
  };
  for (const Value& node : graph.nodes()) {
    std::vector<Operand> operands = node->operands;
    bool moved = false;
    for (Operand& operand : operands) {
      if (!operand.value) continue;
      const Value current = now(operand.value);
      moved |= !(current == operand.value);
      operand.value = current;
    }
    if (const Value other = expansion(*node, operands)) {
      replaced.emplace(node.get(), other);
      changed = true;
    } else if (moved) {
      replaced.emplace(node.get(), build_in(node->type.layout, node->op, std::move(operands), node->attrs, node->region));
    }
  }
  if (!changed) return false;
  std::vector<Value> results;
  for (const Value& value : graph.results()) results.push_back(now(value));
  result = capture(graph.name(), graph.parameters(), std::move(results));
  return true;
}

}  // namespace

Graph expand(const Graph& graph) {
  Graph current = graph, next;
  while (expand_once(current, next)) current = std::move(next);
  return current;
}

}  // namespace fusejit::ir
