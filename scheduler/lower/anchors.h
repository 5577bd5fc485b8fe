// Anchors as tile problems, and the weight gradient's own nest.
#pragma once

#include <optional>

#include "scheduler/lower/group_kernel.h"

namespace fusejit::scheduler {

// conv2d and conv2d_input_grad (one problem per phase of the stride), matmul, linear. `lanes`: 0 for the target's; on
// CUDA nothing comes back if some access cannot be that wide.
std::optional<LoweredGroup> lower_tiled(const LowerContext& context, const Group& group, int lanes = 0);
// conv2d_weight_grad.
LoweredGroup lower_weight_grad(const LowerContext& context, const Group& group);
void emit_weight_grad_along_groups(GroupKernel& kernel, const ir::Node& node);

}  // namespace fusejit::scheduler
