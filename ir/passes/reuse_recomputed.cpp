// A recomputed value serves everyone who needs it late (design §4, §5 recomputation).
//
// A layer that saves only its anchor's input records the anchor again, in a region of its own, for its backward pass.
// Other backward ops may still read the forward value, through element-wise ops that are never stored (the mask of the
// relu behind the layer, the windows of a max-pool): then the forward value stays alive and nothing is won. Here those
// late reads go to the recomputed twin. It has the same bits: same op, same operands, same kernel.
//
// Late is what the first result, the loss of a step, does not need. Operands of forward anchors are stored anyway and
// stay as they are.
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "ir/passes/passes.h"
#include "ir/passes/recompute.h"

namespace fusejit::ir {

Graph reuse_recomputed(const Graph& graph) {
  const std::unordered_map<const Node*, Value> twin = recomputed_anchors(graph);
  if (twin.empty()) return graph;
  std::unordered_set<const Node*> forward;
  for (const Value& value : needed_values(std::span(graph.results()).first(1))) forward.insert(value.get());
  std::unordered_set<const Node*> stored;  // operands of forward anchors
  for (const Value& value : graph.nodes()) {
    if (!forward.count(value.get()) || !op_def(value->op).is_contraction()) continue;
    for (const Operand& operand : value->operands) stored.insert(operand.value.get());
  }
  std::unordered_map<const Node*, Value> late;  // what late users read in place of a node
  const auto substituted = [&](const Operand& operand) -> Operand {
    if (operand.is_number()) return operand;
    const auto found = late.find(operand.value.get());
    return found == late.end() ? operand : Operand(found->second);
  };
  for (const Value& value : graph.nodes()) {
    const Node& node = *value;
    const bool is_forward = forward.count(&node) != 0;
    if (const auto found = twin.find(&node); found != twin.end()) {
      late.emplace(&node, found->second);
      continue;
    }
    const Family family = op_def(node.op).family;
    if (is_forward && (stored.count(&node) || (family != Family::elementwise && family != Family::view))) continue;
    std::vector<Operand> operands;
    bool changed = false;
    std::uint32_t region = node.region;
    for (const Operand& operand : node.operands) {
      operands.push_back(substituted(operand));
      const bool differs = operands.back().value != operand.value;
      changed |= differs;
      if (differs && is_forward) region = operands.back().value->region;
    }
    const OriginScope scope(node);
    if (changed) late.emplace(&node, build_in(node.type.layout, node.op, std::move(operands), node.attrs, region));
  }
  std::vector<Value> results;
  for (const Value& result : graph.results()) {
    const auto found = forward.count(result.get()) ? late.end() : late.find(result.get());
    results.push_back(found == late.end() ? result : found->second);
  }
  return capture(graph.name(), graph.parameters(), std::move(results));
}

}  // namespace fusejit::ir
