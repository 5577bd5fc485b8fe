// Recomputation that saves nothing is left out.
#pragma once

#include "fusejit/target.h"
#include "ir/graph.h"
#include "scheduler/fuse/rules.h"

namespace fusejit::scheduler {

// A layer that saves its convolution's input alone computes the result again for its backward pass. But where that
// input is never stored, because the convolution computes it from the result of the one before while it copies it to
// panels (R6), the backward pass reads that earlier result anyway: it lives as long as it would without recomputation,
// and is read in place of what would be computed again. `graph`: as the passes of ir/passes leave it.
ir::Graph without_idle_recomputation(const ir::Graph& graph, const Target& target, const Rules& rules = Rules::all);

}  // namespace fusejit::scheduler
