// What a step of a plan means, as a graph: from the values that it reads to those that it writes.
#pragma once

#include <optional>
#include <vector>

#include "ir/graph.h"
#include "scheduler/plan.h"

namespace fusejit::tools {

struct Meaning {
  ir::Graph graph;
  std::vector<int> reads;   // plan value of each parameter
  std::vector<int> writes;  // plan value of each result
};

// `graph`: the one that the plan was made of, optimised. None for a step that only packs weights, or whose values are
// kept in a form that no graph has. Weights that are read packed are read as they were.
std::optional<Meaning> meaning_of(const scheduler::Plan& plan, int step, const ir::Graph& graph);

}  // namespace fusejit::tools
