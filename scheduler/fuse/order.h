// In which order the groups of a graph run.
#pragma once

#include "ir/graph.h"
#include "scheduler/fuse/group.h"
#include "scheduler/fuse/links.h"

namespace fusejit::scheduler {

// Puts the groups in a topological order that follows the graph's, with two exceptions. A recomputation (region > 0)
// waits until the first group that needs it, because its point is not to be alive before. And a group that frees as
// much memory as it takes, or more, runs as soon as it can: a weight gradient with its update right behind the input
// gradient that reads the same values, which else would live to the end of the step; one that goes over the same rows
// (gradients.h) at once.
void order_groups(const ir::Graph& graph, const GroupLinks& links, Grouping& grouping);

}  // namespace fusejit::scheduler
