// Storage of a plan's values: arguments and results by reference, what is made of fixed arguments alone once,
// everything else in one arena.
#pragma once

#include <vector>

#include "ir/graph.h"
#include "scheduler/draft/draft.h"

namespace fusejit::scheduler {

// `fixed`: per parameter, or empty (make_plan.h).
Plan give_memory(const ir::Graph& graph, Draft draft, const Target& target, Rules rules,
                 const std::vector<bool>& fixed);

}  // namespace fusejit::scheduler
