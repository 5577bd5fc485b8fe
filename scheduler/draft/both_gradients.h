// Rule R9 for convolutions: both gradients go over what they read together.
#pragma once

#include "fusejit/target.h"
#include "ir/graph.h"
#include "scheduler/draft/draft.h"
#include "scheduler/steps.h"

namespace fusejit::scheduler {

// Steps of such gradients, one after the other, become one that computes both from a block of rows while it is on chip
// (ir/kernel/join/beside.h), where that saves much.
void join_gradients(Draft& draft, const ir::Graph& graph, const Target& target, StepMaker& steps);

}  // namespace fusejit::scheduler
