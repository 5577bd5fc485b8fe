// Steps of a plan from kernels. Equal kernels are one object, which is finished, and asked what it costs, once.
#pragma once

#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "ir/kernel/kernel_set.h"
#include "scheduler/plan.h"

namespace fusejit::scheduler {

class StepMaker {
 public:
  ir::KernelSet& kernels() { return kernels_; }
  // `kernel` is one of kernels(). Fills in what the cost model reads off it.
  PlanStep make(const std::shared_ptr<const ir::Kernel>& kernel, std::vector<int> values, std::vector<std::string> ops);

 private:
  ir::KernelSet kernels_;
  std::unordered_map<const ir::Kernel*, PlanStep> costs_;  // steps without values and ops
};

}  // namespace fusejit::scheduler
