#include "ir/rewrite.h"

#include "ir/base/check.h"

namespace fusejit::ir {

Graph rewrite(const Graph& graph, const Rewrite& rule, bool* changed) {
  std::vector<Value> now = graph.parameters();
  bool any = false;
  now.reserve(static_cast<std::size_t>(graph.value_count()));
  const auto current = [&](const Value& value) { return now[static_cast<std::size_t>(graph.index_of(value.get()))]; };
  for (const Value& node : graph.nodes()) {
    std::vector<Operand> operands = node->operands;
    if (any)
      for (Operand& operand : operands)
        if (operand.value) operand.value = current(operand.value);
    Value value = rule(*node, operands);
    if (value) {
      any = true;
      FJ_ASSERT(value.type() == node.type(), "a rewrite of {} gives {} in place of {}", print_node(graph, *node),
                value.type().str(), node.type().str());
    } else {
      // Capture orders nodes by their making: what comes before the first change may stay.
      value = any ? rebuild(*node, std::move(operands)) : node;
    }
    now.push_back(std::move(value));
  }
  if (!any) return graph;
  if (changed) *changed = true;
  std::vector<Value> results;
  for (const Value& result : graph.results()) results.push_back(current(result));
  return capture(graph.name(), graph.parameters(), std::move(results));
}

}  // namespace fusejit::ir
