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
  LateReads reads;
  for (const Value& value : needed_values(std::span(graph.results()).first(1))) reads.early.insert(value.get());
  std::unordered_set<const Node*> stored;  // operands of forward anchors
  for (const Value& value : graph.nodes()) {
    if (!reads.early.contains(value.get()) || !op_def(value->op).is_contraction()) continue;
    for (const Operand& operand : value->operands) stored.insert(operand.value.get());
  }
  reads.stays = [&](const Node& node) {
    const Family family = op_def(node.op).family;
    return stored.contains(&node) || (family != Family::elementwise && family != Family::view);
  };
  reads.again = [&](const Node& node, const auto&) {
    const auto found = twin.find(&node);
    return found == twin.end() ? Value() : found->second;
  };
  return with_late_reads(graph, reads);
}

}  // namespace fusejit::ir
