// How two plans differ, kernel by kernel.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "scheduler/plan.h"

namespace fusejit::tools {

// Steps of the two plans whose kernels changed in the same way.
struct ChangedKernel {
  std::vector<std::pair<int, int>> steps;  // old, new
  std::string lines;                       // line_diff of the texts
};

struct PlanDiff {
  std::vector<std::pair<int, int>> unchanged;  // one text, whatever the kernel is called
  std::vector<ChangedKernel> changed;
  std::vector<int> removed, added;
  // Where every kernel is as it was, what else differs: values, their places, the order of steps, refusals, the target.
  std::string outline;

  bool none() const { return changed.empty() && removed.empty() && added.empty() && outline.empty(); }
};

// Kernels of one text belong together; of the others those that compute the same ops, then those of the same name.
PlanDiff diff_of(const scheduler::Plan& before, const scheduler::Plan& after);

}  // namespace fusejit::tools
