// What a library's calls write beside or in place of their anchor's result (R5): of an input gradient the sum with what
// else flows into the same value, and what a mask lets through of that; of a convolution, its statistics.
#pragma once

#include <vector>

#include "scheduler/fuse/rules.h"
#include "scheduler/library.h"

namespace fusejit::scheduler {

// Input gradients that `supports` says the library computes together with
//   %g = add(conv2d_input_grad(..), %side)
//   %g = where(%mask, conv2d_input_grad(..) [+ %side], 0)       the mask one bit an element, or made of a relu's output
// and nobody else reads. That %g takes the gradient's place in memory costs nothing, so it is to be stored whatever
// computing it again would; so is a mask of bits (R8). And what it sums of a result, together or not at all: for batch
// norm's gradient, a bias's, or a convolution's statistics
//   %s = sum(%g)    %q = sum(%g · (%y − mean))        %s = sum(conv2d(..))    %q = sum(conv2d(..)²)
// Nodes that are `alone` (by node; empty: none) stay so.
std::vector<CallResult> find_call_results(const ir::Graph& graph, const Target& target, const LibrarySupports& supports,
                                          const std::vector<bool>& alone, const Rules& rules);

// Those of `grouping` that came out so, without sums that run apart. Of the others the result runs apart from the call,
// or whoever computes the mask cannot store bits.
std::vector<CallResult> fit_call_results(const ir::Graph& graph, const Target& target, const Grouping& grouping);

}  // namespace fusejit::scheduler
