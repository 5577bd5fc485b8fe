// Steps of a plan from kernels. Equal kernels are one object, which is finished, and asked what it costs, once.
#pragma once

#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "ir/kernel/join/join.h"
#include "ir/kernel/kernel_set.h"
#include "scheduler/plan.h"

namespace fusejit::scheduler {

// The kernel of two steps, and where the buffers of each are in its signature; -1: it has no such buffer any more.
struct JoinedKernel {
  std::shared_ptr<const ir::Kernel> kernel;
  std::vector<int> first, second;
};
// Named by what both steps compute.
JoinedKernel named(ir::Joined joined, const ir::Graph& graph, const PlanStep& first, const PlanStep& second);
// By buffer of the second step's kernel: the first's buffer with the same value, or -1.
std::vector<int> same_values(const PlanStep& first, const PlanStep& second);
// Work included, as steps are billed.
std::int64_t moved_bytes(const ir::Kernel& kernel);
inline std::int64_t moved_bytes(const PlanStep& step) { return step.read_bytes + step.written_bytes; }

class StepMaker {
 public:
  ir::KernelSet& kernels() { return kernels_; }
  // `kernel` is one of kernels(). Fills in what the cost model reads off it.
  PlanStep make(const std::shared_ptr<const ir::Kernel>& kernel, std::vector<int> values, std::vector<std::string> ops);
  // Of two steps as one, all but what it overwrites.
  PlanStep make_joined(const JoinedKernel& joined, const PlanStep& first, const PlanStep& second);

 private:
  ir::KernelSet kernels_;
  std::unordered_map<const ir::Kernel*, PlanStep> costs_;  // steps without values and ops
};

}  // namespace fusejit::scheduler
