#include "scheduler/lower/lower.h"

#include "scheduler/lower/anchors.h"
#include "scheduler/lower/loops.h"

namespace fusejit::scheduler {

LoweredGroup lower(const LowerContext& context, const Group& group) {
  if (group.anchor >= 0) {
    const bool packs = ir::op_def(context.graph.value(group.anchor)->op).packs_second;
    return packs ? lower_tiled(context, group) : lower_weight_grad(context, group);
  }
  LoweredGroup lowered;
  if (group.domain.elements() == 0 && group.reductions.empty()) return lowered;  // nothing to store
  GroupKernel kernel(context, group, true);
  if (group.reductions.empty()) {
    emit_pointwise(kernel);
  } else {
    emit_reduction(kernel);
  }
  lowered.kernels.push_back(std::move(kernel).finish());
  return lowered;
}

}  // namespace fusejit::scheduler
