// FusionGroup: graph nodes that run together as one kernel, around an anchor, reductions or element-wise results.
#pragma once

#include <vector>

#include "fusejit/target.h"
#include "ir/graph.h"
#include "scheduler/refusal.h"
#include "scheduler/space.h"

namespace fusejit::scheduler {

struct Group {
  int anchor = -1;              // node whose tile the group is built around, -1: none
  Type domain;                  // what is iterated over
  std::vector<bool> reduced;    // dims of the domain that `reductions` reduce; empty without reductions
  std::vector<int> stores;      // values of the domain's shape that are stored, in graph order
  std::vector<int> inner;       // values of the domain's shape that only this group uses: computed, never stored
  std::vector<int> reductions;  // reduce nodes over the domain, one class
  std::vector<int> finals;      // stored values of the reduced class that need the finished reductions (R3)
  int length = 0;               // sum of its members' lengths
};

struct Refused {
  int producer, consumer;  // nodes
  Refusal refusal;
};

struct Grouping {
  std::vector<bool> stored;                   // by node: in memory; everything else is computed where it is used
  std::vector<int> lengths;                   // by node: nodes to compute to get it from what is stored
  std::vector<int> group_of;                  // by node: group that stores it, -1: parameter, constant or not stored
  std::vector<Group> groups;                  // in execution order
  std::vector<std::vector<Access>> accesses;  // by node that a group stores: accesses_of()
  std::vector<Refused> refusals;
};

// What a node's expression reads when computed over its domain, given what is stored: one entry per distinct access.
std::vector<Access> accesses_of(const ir::Graph& graph, const std::vector<bool>& stored, int node);
// False if views make an index of more than `most` atoms on the way from the node to what is stored.
bool keeps_indices_short(const ir::Graph& graph, const std::vector<bool>& stored, int node, int most);
// Domain that a stored node is computed over: the operand of a reduction, else its own type.
const Type& domain_of(const ir::Node& node);
// The expressions to evaluate over the domain: the node itself, or the operand of a reduction.
int expression_of(const ir::Graph& graph, int node);
// By dim of its operand: reduced by this reduce node.
std::vector<bool> reduced_dims(const ir::Node& node);
// A matrix product whose right-hand side has more than one matrix.
bool is_batched(const ir::Node& node);
// "%3 conv2d"
std::string label(const ir::Graph& graph, int node);

// R10: a kernel computes at most so many nodes. Expressions are walked by recursion, and compilers are not linear.
inline constexpr int kMostLength = 128;

// Decides what is stored: results, anchors, reductions, what is cheaper stored than computed again (R1, R10). Fills
// `stored` and `lengths`. What is `alone` (by node; empty: none) is stored.
void choose_stored(const ir::Graph& graph, const Target& target, const std::vector<bool>& alone, Grouping& grouping);

}  // namespace fusejit::scheduler
