// What the parts of a grid leave in `work`, joined in a phase of its own: always in the same order, and by enough
// threads. A thread of the last phase alone would walk a thousand parts one after the other, at the latency of memory.
#pragma once

#include "scheduler/lower/accumulator.h"
#include "scheduler/lower/cuda/threads.h"

namespace fusejit::scheduler::cuda {

struct Joining {
  std::int64_t elements = 1, parts = 1;
  std::vector<ir::Combiner> combiners;
  std::vector<DType> types;
  // The state that a part has left for an element.
  std::function<std::vector<ir::Arg>(const ir::Index& part, const ir::Index& element)> load;
  // What becomes of an element's joined state.
  std::function<void(const ir::Index& element, const std::vector<ir::Arg>& state)> done;
};

// The next phase: for every element its parts, joined. Rows of threads (block.y) take every rows-th part in ascending
// order and meet in a tree.
void join_parts(ir::KernelBuilder& builder, const Joining& joining);

// The same for one sum of `type`, which is added up in f64.
struct JoiningSums {
  std::int64_t elements = 1, parts = 1;
  DType type = DType::f32;
  std::function<ir::ValueId(const ir::Index& part, const ir::Index& element)> load;
  std::function<void(const ir::Index& element, const ir::Arg& sum)> done;
};
void join_sums(GroupKernel& kernel, const JoiningSums& joining);

// join_parts() for the accumulators of a group (sums of f32 meet in f64), then finish() at the points of `kept`
// elements.
void combine_parts(GroupKernel& kernel, Accumulators& accumulators, const std::vector<ir::MemId>& work,
                   std::int64_t parts, std::int64_t total, std::int64_t kept,
                   const std::function<std::vector<ir::Index>(const ir::Index& element)>& point);

}  // namespace fusejit::scheduler::cuda
