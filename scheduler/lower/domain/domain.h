// A group without an anchor: its domain, scheduled and built.
#pragma once

#include <optional>

#include "scheduler/lower/group_kernel.h"
#include "scheduler/schedule/domain.h"

namespace fusejit::scheduler {

// What is computed, and the nodes of the graph behind what it says of pooling gradients.
struct GroupDomain {
  Domain domain;
  int pooled = -1;       // a max_pool2d_grad of which Domain::windows are the windows
  int overlapping = -1;  // one of which Domain::maxima_rows are the rows
  int pool = -1;         // a max_pool2d of which Domain::pooled_rows are the rows
};

// `lanes`: on CUDA, elements of a thread's access; nothing comes back if some access cannot be that wide.
std::optional<LoweredGroup> lower_domain(const LowerContext& context, const Group& group, int lanes);

// The kernel: of a group without reductions; with reductions, finals, and the values stored on the way; either, where
// the schedule is bound to threads.
void build_by_threads(GroupKernel& kernel, const GroupDomain& of, const Schedule& schedule);
void build_pointwise(GroupKernel& kernel, const GroupDomain& of, const Schedule& schedule);
void build_reduction(GroupKernel& kernel, const GroupDomain& of, const Schedule& schedule);

}  // namespace fusejit::scheduler
