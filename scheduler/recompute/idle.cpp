#include "scheduler/recompute/idle.h"

#include <algorithm>
#include <limits>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "ir/passes/recompute.h"
#include "ir/rewrite.h"
#include "scheduler/fuse/analysis.h"
#include "scheduler/fuse/choose_stored.h"

namespace fusejit::scheduler {
namespace {

using Nodes = std::unordered_set<const ir::Node*>;

// What is read in memory by values that the first result, the loss of a step, does not need.
Nodes read_late(const ir::Graph& graph, const Target& target, const Rules& rules) {
  Grouping grouping;
  choose_stored(graph, target, {}, rules, grouping);
  Nodes forward, read;
  for (const ir::Value& value : ir::needed_values(std::span(graph.results()).first(1))) forward.insert(value.get());
  for (int v = static_cast<int>(graph.parameters().size()); v < graph.value_count(); ++v) {
    const ir::Node& node = *graph.value(v);
    if (!grouping.stored[static_cast<std::size_t>(v)] || forward.contains(&node) || node.op == ir::Op::constant)
      continue;
    for (const Access& access : accesses_of(graph, grouping.stored, v, domain_of(node)))
      read.insert(graph.value(access.node).get());
  }
  return read;
}

// The graph with the first of each pair in place of the second. What is small and computed of those and of the forward
// pass's values alone, such as a mean, leaves its region, and is one with what the forward pass has computed.
ir::Graph with_first(const ir::Graph& graph, const std::unordered_map<const ir::Node*, const ir::Node*>& first_of) {
  std::int64_t least = std::numeric_limits<std::int64_t>::max();
  std::unordered_map<const ir::Node*, ir::Value> firsts;  // as they are in the new graph
  Nodes outside;
  for (const auto& [again, first] : first_of) {
    least = std::min(least, again->type.elements());
    outside.insert(again), firsts.emplace(first, ir::Value());
  }
  return ir::rewrite(graph, [&](const ir::Node& node, const std::vector<ir::Operand>& operands) -> ir::Value {
    if (const auto first = firsts.find(&node); first != firsts.end())
      return first->second = ir::rebuild(node, operands);
    if (const auto again = first_of.find(&node); again != first_of.end()) return firsts.at(again->second);
    bool leaves = false, all_forward = true;
    for (std::size_t i = 0; i < operands.size(); ++i) {
      if (operands[i].is_number()) continue;
      leaves = leaves || outside.contains(node.operands[i].value.get());
      all_forward = all_forward && operands[i].value->region == 0;
    }
    if (!leaves || !all_forward || node.type.elements() * 2 > least) return {};
    outside.insert(&node);
    return ir::build_in(node.type.layout, node.op, operands, node.attrs);
  });
}

}  // namespace

ir::Graph without_idle_recomputation(const ir::Graph& graph, const Target& target, const Rules& rules) {
  const auto recomputed = ir::recomputed_anchors(graph);
  if (recomputed.empty()) return graph;
  const Nodes late = read_late(graph, target, rules);
  std::unordered_map<const ir::Node*, const ir::Node*> first_of;  // of what is computed again for nothing
  for (const auto& [first, again] : recomputed)
    if (late.contains(first)) first_of.emplace(again.get(), first);
  return first_of.empty() ? graph : with_first(graph, first_of);
}

}  // namespace fusejit::scheduler
