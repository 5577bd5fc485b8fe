// Anchors as tile problems, and the weight gradient's own nest.
#pragma once

#include <optional>

#include "scheduler/lower/group_kernel.h"
#include "scheduler/lower/window.h"

namespace fusejit::scheduler {

// conv2d and conv2d_input_grad (one problem per phase of the stride), matmul, linear. `lanes`: 0 for the target's; on
// CUDA nothing comes back if some access cannot be that wide.
std::optional<LoweredGroup> lower_tiled(const LowerContext& context, const Group& group, int lanes = 0);
// conv2d_weight_grad: of what, and the shape of the convolution.
struct WeightGradProblem {
  int x = -1, dy = -1;  // graph values
  std::int64_t images = 1, groups = 1;
  std::int64_t channels = 1, outputs = 1;  // of a group
  Window rows, columns;
  DType compute = DType::f32;
};
WeightGradProblem weight_grad_problem(const ir::Graph& graph, const ir::Node& node);
LoweredGroup lower_weight_grad(const LowerContext& context, const Group& group);
void emit_weight_grad_along_groups(GroupKernel& kernel, const ir::Node& node);

}  // namespace fusejit::scheduler
