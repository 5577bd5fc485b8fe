#include "scheduler/fuse/recomputation.h"

#include <algorithm>
#include <limits>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "ir/passes/recompute.h"
#include "scheduler/fuse/analysis.h"
#include "scheduler/fuse/choose_stored.h"

namespace fusejit::scheduler {
namespace {

using Nodes = std::unordered_set<const ir::Node*>;

// What is read in memory by values that the first result, the loss of a step, does not need.
Nodes read_late(const ir::Graph& graph, const Target& target) {
  Grouping grouping;
  choose_stored(graph, target, {}, grouping);
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

// The graph with others in place of some values. What is small and computed of those and of the forward pass's values
// alone, such as a mean, leaves its region, and is one with what the forward pass has computed.
ir::Graph replaced(const ir::Graph& graph, std::unordered_map<const ir::Node*, ir::Value> by) {
  std::int64_t least = std::numeric_limits<std::int64_t>::max();
  Nodes others;
  for (const auto& [node, other] : by) least = std::min(least, node->type.elements()), others.insert(node);
  for (const ir::Value& parameter : graph.parameters()) by.emplace(parameter.get(), parameter);
  for (const ir::Value& value : graph.nodes()) {
    if (const auto found = by.find(value.get()); found != by.end()) {
      found->second = by.at(found->second.get());
      continue;
    }
    std::vector<ir::Operand> operands = value->operands;
    bool of_others = false, outside = value->type.elements() * 2 <= least;
    for (ir::Operand& operand : operands) {
      if (operand.is_number()) continue;
      of_others = of_others || others.contains(operand.value.get());
      operand.value = by.at(operand.value.get());
      outside = outside && operand.value->region == 0;
    }
    if (outside && of_others) others.insert(value.get());
    const ir::OriginScope scope(*value);
    by.emplace(value.get(), ir::build_in(value->type.layout, value->op, std::move(operands), value->attrs,
                                         outside && of_others ? 0 : value->region));
  }
  std::vector<ir::Value> results;
  for (const ir::Value& result : graph.results()) results.push_back(by.at(result.get()));
  return ir::capture(graph.name(), graph.parameters(), std::move(results));
}

}  // namespace

ir::Graph without_idle_recomputation(const ir::Graph& graph, const Target& target) {
  std::unordered_map<const ir::Node*, ir::Value> idle;  // recomputed -> what lives anyway
  const auto recomputed = ir::recomputed_anchors(graph);
  if (recomputed.empty()) return graph;
  const Nodes late = read_late(graph, target);
  for (const auto& [first, again] : recomputed)
    if (late.contains(first)) idle.emplace(again.get(), graph.value(graph.index_of(first)));
  return idle.empty() ? graph : replaced(graph, std::move(idle));
}

}  // namespace fusejit::scheduler
