// Anchors as tile problems, and the weight gradient's own nest.
#pragma once

#include "scheduler/lower/lower.h"

namespace fusejit::scheduler {

// conv2d and conv2d_input_grad (one problem per phase of the stride), matmul, linear.
LoweredGroup lower_tiled(const LowerContext& context, const Group& group);
// conv2d_weight_grad.
LoweredGroup lower_weight_grad(const LowerContext& context, const Group& group);

}  // namespace fusejit::scheduler
