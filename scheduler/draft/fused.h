// The draft of a graph that passes have made ready: groups as kernels, one after the other.
#pragma once

#include "scheduler/draft/draft.h"
#include "scheduler/make_plan.h"
#include "scheduler/steps.h"

namespace fusejit::scheduler {

// `in_place`: results may overwrite what nothing reads afterwards. A group that fails is split (Draft::fallbacks);
// throws NoKernel where a node alone fails.
Draft draft_fused(const ir::Graph& graph, const PlanOptions& options, bool in_place, StepMaker& steps);

}  // namespace fusejit::scheduler
