// The arrow FusionGroup -> kernels. A group is one kernel, plus one in front of it where weights are packed.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "fusejit/target.h"
#include "ir/kernel/kernel_set.h"
#include "scheduler/fuse/group.h"
#include "scheduler/schedule/schedule.h"

namespace fusejit::scheduler {

// A value that lowering adds to those of the graph, such as packed weights. Ids continue after the graph's.
struct ExtraValue {
  DType dtype;
  std::vector<std::int64_t> dims;
  std::string label;
};

struct LoweredKernel {
  std::shared_ptr<const ir::Kernel> kernel;
  std::vector<int> values;  // graph value, or graph.value_count() + extra, of each buffer parameter
};

struct LoweredGroup {
  std::vector<LoweredKernel> kernels;
  std::vector<ScheduledWork> schedules;  // of the last one
  std::vector<ExtraValue> extras;
};

struct LowerContext {
  const ir::Graph& graph;
  const Grouping& grouping;
  const Target& target;
  bool library;                         // a library takes the group's anchor; its kernel reads operands as they are
  int first_extra;                      // id of the first extra value that this group makes
  std::map<int, int> in_place;          // stored value -> value whose memory it overwrites in this very kernel
  const std::vector<bool>& plan_owned;  // by graph value: 64-byte aligned memory of the plan
  ir::KernelSet& finished;              // kernels of groups before this one
  const Reschedule& reschedule;         // empty, or what to do instead of the chosen schedules
  ir::ContractionsFn contractions;      // what an anchor computes
  bool beside_gradient;                 // the other gradient of the anchor's convolution is lowered next to it (R9)
  const Schedule* after;                // of the sums over the same domain that this group needs; null: none
};

LoweredGroup lower(const LowerContext& context, const Group& group);

// What has been written as a kernel; on a device with the copies of its loops.
std::shared_ptr<const ir::Kernel> finish(const LowerContext& context, ir::KernelBuilder&& builder);

}  // namespace fusejit::scheduler
