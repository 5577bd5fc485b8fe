// Building a part of a graph once more: the walk that the gradient, recomputation and expansion share, and regions.
//
// Nodes merge only within a region (design.md §4), so a copy in a region of its own stays a recomputation whatever pass
// runs afterwards.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "ir/graph.h"

namespace fusejit::ir {

// What `roots` need, operands before users, each once; operands are entered in order, so equal graphs give equal
// orders. Nodes of `boundary` are listed but not entered.
std::vector<Value> needed_values(std::span<const Value> roots, const std::unordered_set<const Node*>& boundary = {});

// `values` computed again from `boundary` and from parameters, every node between them copied into `region`. Values of
// the boundary stay what they are.
std::vector<Value> recompute_in_region(std::span<const Value> values, std::uint32_t region,
                                       std::span<const Value> boundary);
Value recompute_in_region(const Value& value, std::uint32_t region, std::span<const Value> boundary);
// Copies of `values`, operands before users, in `region`; of those that `copies` has, those. Parameters stay.
void copy_into_region(std::span<const Value> values, std::uint32_t region,
                      std::unordered_map<const Node*, Value>& copies);

// Anchors of the forward pass that the graph computes again, in a region of its own: the first of each -> the second.
std::unordered_map<const Node*, Value> recomputed_anchors(const Graph& graph);

// What the backward pass reads in place of values of the forward pass.
struct LateReads {
  // Of the forward pass; everything else is late. Holds what its nodes need.
  std::unordered_set<const Node*> early;
  // In memory when the forward pass ends: late readers read it there. What does not stay is computed by whoever reads
  // it, late readers over the operands that they have in place of early ones.
  std::function<bool(const Node&)> stays;
  // The value for late readers; an empty Value: none but the first. `operands`: of the node, computed anew in `region`
  // from what stays and what stands in for the rest.
  std::function<Value(const Node&, const std::function<std::vector<Operand>()>& operands)> again;
  std::uint32_t region = 0;
};
// The graph whose late nodes read what `reads` says.
Graph with_late_reads(const Graph& graph, const LateReads& reads);

// A region that nothing behind `values` is in.
std::uint32_t fresh_region(std::span<const Value> values);

}  // namespace fusejit::ir
