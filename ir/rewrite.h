// The rewrite driver: one walk over a graph, operands before users, without recursion. Nodes are made anew in the order
// of the graph, from the first that changes on, so that a pass keeps the order of what it does not touch; regions stay
// as they are. Where nothing changes, the graph itself comes back.
#pragma once

#include <functional>
#include <vector>

#include "ir/graph.h"

namespace fusejit::ir {

// What stands in place of `node` over `operands`, which are rewritten already: a value of exactly the node's type,
// possibly one of the operands; an empty Value keeps the node.
using Rewrite = std::function<Value(const Node& node, const std::vector<Operand>& operands)>;

// A value in place of a node of `type`, in its layout and region; empty if the type does not come out the same.
Value build_as(const Type& type, Op op, std::vector<Operand> operands, std::vector<AttrInit> attrs,
               std::uint32_t region);

// `changed`, if given, is set when the rule replaced anything and left alone otherwise.
Graph rewrite(const Graph& graph, const Rewrite& rule, bool* changed = nullptr);

}  // namespace fusejit::ir
