// A max pool's windows are looked through at the speed of the caches: what the rows of windows further down look at is
// fetched meanwhile, every element once.
#pragma once

#include <vector>

#include "scheduler/lower/expression/window.h"
#include "scheduler/lower/group_kernel.h"

namespace fusejit::scheduler {

class NextWindows {
 public:
  // `pool`: a max_pool2d or max_pool2d_grad of the kernel. Where it is -1, or the schedule fetches nothing, nothing is
  // fetched.
  NextWindows(GroupKernel& kernel, int pool, const Schedule& schedule);
  bool active() const { return pool_ >= 0; }

  // While window [p, q] is looked through: `elements` along the last axis of `point`, which names no lane.
  void fetch(std::vector<ir::Index> point, const ir::Index& p, const ir::Index& q, std::int64_t elements);

 private:
  GroupKernel& kernel_;
  const int pool_;
  const std::int64_t rows_ahead_;
  Window rows_, columns_;
};

}  // namespace fusejit::scheduler
