// What runs together: the groups of a graph.
#pragma once

#include <vector>

#include "scheduler/fuse/rules.h"
#include "scheduler/library.h"

namespace fusejit::scheduler {

// Groups what is stored (R1, R2, R3, R5). An anchor that a library runs takes with it what `supports` agrees to;
// without an answer it stays alone. Nodes that are `alone` (by node; empty: none) are groups of their own. `rules`:
// some, or all but some. Concatenations are stored by their parts' groups where that can be, if `in_place`.
Grouping make_groups(const ir::Graph& graph, const Target& target, const LibrarySupports& supports,
                     const std::vector<bool>& alone = {}, const Rules& rules = Rules::all, bool in_place = false);

}  // namespace fusejit::scheduler
