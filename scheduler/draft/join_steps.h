// Rule R4: what needs a finished reduction of a few rows runs in the reduction's kernel, row by row, while the rows are
// on chip.
#pragma once

#include "fusejit/target.h"
#include "ir/graph.h"
#include "scheduler/draft/draft.h"
#include "scheduler/steps.h"

namespace fusejit::scheduler {

// Steps without an anchor that read what such a step before them has written become one with it, where their kernels
// can be joined (ir/kernel/join/join.h), a round's part of every value fits the target's cache, and bytes are saved. A
// step whose values all come from `fixed` parameters stays: it runs once. What was refused between two that are one is
// forgotten.
void join_steps(Draft& draft, const ir::Graph& graph, const Target& target, const std::vector<bool>& fixed,
                StepMaker& steps);

}  // namespace fusejit::scheduler
