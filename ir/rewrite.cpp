#include "ir/rewrite.h"

#include "ir/base/check.h"

namespace fusejit::ir {

Value build_as(const Type& type, Op op, std::vector<Operand> operands, std::vector<AttrInit> attrs,
               std::uint32_t region) {
  Value value = build(op, std::move(operands), std::move(attrs), region);
  if (value.type().layout != type.layout && value.type().shape.rank() == 4)
    value = build_in(type.layout, op, value->operands, value->attrs, region);
  return value.type() == type ? value : Value();
}

Graph rewrite(const Graph& graph, const Rewrite& rule, bool* changed) {
  std::vector<Value> now;  // by index, from the first change on
  const auto current = [&](int index) { return now[static_cast<std::size_t>(index)]; };
  for (int v = static_cast<int>(graph.parameters().size()); v < graph.value_count(); ++v) {
    const Value& node = graph.value(v);
    std::vector<Operand> moved;
    if (!now.empty()) {
      moved = node->operands;
      for (std::size_t i = 0; i < moved.size(); ++i)
        if (moved[i].value) moved[i].value = current(graph.operands(v)[i]);
    }
    const OriginScope scope(*node);
    Value value = rule(*node, now.empty() ? node->operands : moved);
    if (!value && now.empty()) continue;  // capture orders nodes by their making, so these may stay
    if (value) {
      FJ_ASSERT(value.type() == node.type(), "a rewrite of {} gives {} in place of {}", print_node(graph, *node),
                value.type().str(), node.type().str());
    } else {
      value = rebuild(*node, std::move(moved));
    }
    if (now.empty())
      for (int kept = 0; kept < v; ++kept) now.push_back(graph.value(kept));
    now.push_back(std::move(value));
  }
  if (now.empty()) return graph;
  if (changed) *changed = true;
  std::vector<Value> results;
  for (const Value& result : graph.results()) results.push_back(current(graph.index_of(result.get())));
  return capture(graph.name(), graph.parameters(), std::move(results));
}

}  // namespace fusejit::ir
