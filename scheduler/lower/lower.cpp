#include "scheduler/lower/lower.h"

#include <optional>

#include "scheduler/lower/cuda/copies.h"
#include "scheduler/lower/cuda/lower.h"
#include "scheduler/lower/expression/kept_maxima.h"
#include "scheduler/lower/loops.h"
#include "scheduler/lower/nest/contraction.h"

namespace fusejit::scheduler {
namespace {

LoweredGroup lower_x86(const LowerContext& context, const Group& group) {
  if (group.anchor >= 0) return *lower_contractions(context, group, 0);
  const int overlapping = overlapping_pool_grad(context, group);
  GroupKernel kernel(context, group, overlapping < 0);
  group.reductions.empty() ? emit_pointwise(kernel, overlapping) : emit_reduction(kernel, overlapping);
  LoweredGroup lowered;
  lowered.kernels.push_back(std::move(kernel).finish());
  return lowered;
}

// Nothing if some access cannot be `lanes` elements wide.
std::optional<LoweredGroup> lower_cuda(const LowerContext& context, const Group& group, int lanes) {
  if (group.anchor >= 0) return lower_contractions(context, group, lanes);
  GroupKernel kernel(context, group, true, lanes);
  const std::int64_t last = kernel.space().axes.empty() ? 1 : kernel.space().axes.back().extent;
  if (last % lanes != 0 && (kernel.space().axes.size() > 1 || !group.reductions.empty())) {
    return std::nullopt;  // only a flat kernel has a tail
  } else {
    group.reductions.empty() ? cuda::emit_pointwise(kernel, lanes) : cuda::emit_reduction(kernel, lanes);
  }
  if (!kernel.builder().vectors_aligned()) return std::nullopt;
  LoweredGroup lowered;
  lowered.kernels.push_back(std::move(kernel).finish());
  return lowered;
}

}  // namespace

LoweredGroup lower(const LowerContext& context, const Group& group) {
  if (group.anchor < 0 && group.domain.elements() == 0 && group.reductions.empty()) return {};  // nothing to store
  if (context.target.isa != Isa::cuda) return lower_x86(context, group);
  for (int lanes = cuda_lanes(context, group);; lanes /= 2) {
    if (std::optional<LoweredGroup> lowered = lower_cuda(context, group, lanes)) return std::move(*lowered);
  }
}

std::shared_ptr<const ir::Kernel> finish(const LowerContext& context, ir::KernelBuilder&& builder) {
  if (context.target.isa != Isa::cuda) return context.finished.finish(std::move(builder));
  return context.finished.finish(std::move(builder), cuda::bound_copies);
}

}  // namespace fusejit::scheduler
