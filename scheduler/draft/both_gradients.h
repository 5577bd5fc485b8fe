// Rule R9 for convolutions: both gradients go over what they read together.
#pragma once

#include "fusejit/target.h"
#include "ir/graph.h"
#include "scheduler/draft/draft.h"
#include "scheduler/steps.h"

namespace fusejit::scheduler {

// On processors, where convolutions are kernels of ours that others' work is in.
bool joins_gradients(const Rules& rules, const Target& target);

// Two anchors, or -1: gradients that go over the same rows (fuse/gradients.h) of images enough to be tasks, whose
// weights stay in L2, once as they are read and once as their gradient's sums.
bool gradients_meet(const ir::Graph& graph, const Target& target, int by_input, int by_weights);
// Bytes that are worth it, of those that both move apart: enough of them, and more than caches hold anyway.
bool is_much_of(std::int64_t saved, std::int64_t moved, const Target& target);

// Rows of all images that such an input gradient goes over at least, each of some groups where there are any.
std::int64_t rounds_of_gradients(const ir::Graph& graph, const Target& target, int by_input);

// Steps of such gradients, one after the other, become one that computes both from a block of rows while it is on chip
// (ir/kernel/join/beside.h), where that saves much.
void join_gradients(Draft& draft, const ir::Graph& graph, const Target& target, StepMaker& steps);

}  // namespace fusejit::scheduler
