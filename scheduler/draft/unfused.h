// The draft of a graph without fusion.
#pragma once

#include "scheduler/draft/draft.h"
#include "scheduler/make_plan.h"

namespace fusejit::scheduler {

// rules=none: every recorded node, in its layout, is a graph of its own, its operands parameters.
Draft draft_unfused(const ir::Graph& graph, const PlanOptions& options);

}  // namespace fusejit::scheduler
