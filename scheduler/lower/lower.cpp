#include "scheduler/lower/lower.h"

#include <optional>

#include "scheduler/lower/cuda/copies.h"
#include "scheduler/lower/domain/domain.h"
#include "scheduler/lower/nest/contraction.h"

namespace fusejit::scheduler {

LoweredGroup lower(const LowerContext& context, const Group& group) {
  if (group.anchor < 0 && group.domain.elements() == 0 && group.reductions.empty()) return {};  // nothing to store
  const auto lower_group = group.anchor >= 0 ? lower_contractions : lower_domain;
  if (context.target.isa != Isa::cuda) return *lower_group(context, group, 0);
  for (int lanes = cuda_lanes(context, group);; lanes /= 2) {  // the widest accesses that are aligned
    if (std::optional<LoweredGroup> lowered = lower_group(context, group, lanes)) return std::move(*lowered);
  }
}

std::shared_ptr<const ir::Kernel> finish(const LowerContext& context, ir::KernelBuilder&& builder) {
  if (context.target.isa != Isa::cuda) return context.finished.finish(std::move(builder));
  return context.finished.finish(std::move(builder), cuda::bound_copies);
}

}  // namespace fusejit::scheduler
