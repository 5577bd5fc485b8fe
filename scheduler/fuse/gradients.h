// The two gradients of a convolution, which have an operand in common.
#pragma once

#include "fusejit/target.h"
#include "ir/graph.h"
#include "scheduler/fuse/group.h"
#include "scheduler/fuse/rules.h"

namespace fusejit::scheduler {

// Nodes, or -1: a convolution's gradients by its input and by its weights, of f32, that go over the same rows of the
// same gradient: with a single tap, or depthwise, where rows around them are all that taps add.
bool go_over_same_rows(const ir::Graph& graph, int by_input, int by_weights);

// Rule R9 for them (draft/both_gradients.h): on processors, where convolutions are kernels of ours that others' work is
// in.
bool joins_gradients(const Rules& rules, const Target& target);

// Two anchors, or -1: gradients that go over the same rows of images enough to be tasks, whose weights stay in L2, once
// as they are read and once as their gradient's sums.
bool gradients_meet(const ir::Graph& graph, const Target& target, int by_input, int by_weights);

// Bytes that are worth it, of those that both move apart: enough of them, and more than caches hold anyway.
bool is_much_of(std::int64_t saved, std::int64_t moved, const Target& target);
// What both groups read of others' memory.
std::int64_t bytes_both_read(const ir::Graph& graph, const Grouping& grouping, int g, int other);
// The groups of two such gradients: what both read, of all that they read and write of images.
bool gradients_share_much(const ir::Graph& graph, const Target& target, const Grouping& grouping, int by_input,
                          int by_weights);

}  // namespace fusejit::scheduler
