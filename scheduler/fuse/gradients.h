// The two gradients of a convolution, which have an operand in common.
#pragma once

#include "ir/graph.h"

namespace fusejit::scheduler {

// Nodes, or -1: a convolution's gradients by its input and by its weights, of f32, that go over the same rows of the
// same gradient: with a single tap, or depthwise, where rows around them are all that taps add.
bool go_over_same_rows(const ir::Graph& graph, int by_input, int by_weights);

}  // namespace fusejit::scheduler
