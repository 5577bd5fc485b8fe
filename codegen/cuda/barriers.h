// Where threads of a block must wait for each other: kernel-ir.md leaves barriers to the emitter.
#pragma once

#include <set>

#include "codegen/cuda/tails.h"
#include "ir/kernel/kernel.h"

namespace fusejit::codegen::cuda {

// The statements that a barrier must precede. Two accesses to one memory need a barrier between them if one writes and
// they may be of different threads: made in different block loops, or in one that leaves a block axis out (then thread
// 0 of that axis stores what all of them read). What one block loop does to an element, in all of its runs, one thread
// does (V1, V2).
// The reduction of a block loop is a barrier itself where its tree goes through shared memory.
std::set<const ir::Stmt*> barriers(const ir::Kernel& kernel, const ir::Phase& phase, const Tails& tails);

// Does the tree over an axis of so many threads, `stride` apart, go through shared memory? Else shuffles are enough.
inline bool meets_in_shared_memory(std::int64_t extent, std::int64_t stride) {
  return extent > 1 && (stride > 1 || extent > 32);
}

}  // namespace fusejit::codegen::cuda
