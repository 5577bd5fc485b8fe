// The ops of a step as one call of cuDNN.
#pragma once

#include <vector>

#include "ir/graph.h"
#include "runtime/cudnn/call.h"

namespace fusejit::runtime::cudnn {

struct StepCall {
  ConvolutionCall call;
  // Which tensor of the call each value of the LibraryOp is: its parameters, then its results.
  std::vector<Role> roles;
};
// Throws UnsupportedError, with a sentence, for ops that are not one call: a convolution or a gradient of one; after a
// forward one its statistics, or a scale, a side input, a bias and an activation; after an input gradient a side input,
// the mask of a relu, by its output or by bits of what passes, and the sums over a channel that the gradients of a bias
// and of batch norm need.
StepCall step_call(const ir::Graph& ops);

}  // namespace fusejit::runtime::cudnn
