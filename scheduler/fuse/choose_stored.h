// Which values are kept in memory. Everything else is computed again wherever it is used (R1, R8, R10).
#pragma once

#include <vector>

#include "scheduler/fuse/group.h"
#include "scheduler/fuse/rules.h"

namespace fusejit::scheduler {

// Decides what is stored: results, anchors, reductions, what is cheaper stored than computed again (R1, R10). Fills
// `stored` and `lengths`. What is `alone` (by node; empty: none) is stored, and so is what has a home in `grouping`, or
// that calls store or read as bits.
void choose_stored(const ir::Graph& graph, const Target& target, const std::vector<bool>& alone, const Rules& rules,
                   Grouping& grouping);

}  // namespace fusejit::scheduler
