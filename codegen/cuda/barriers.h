// Where threads of a block must wait for each other: kernel-ir.md leaves barriers to the emitter.
#pragma once

#include <set>

#include "ir/kernel/kernel.h"

namespace fusejit::codegen::cuda {

// The statements that a barrier must precede. Two accesses to one memory need a barrier between them if one writes and
// they may be of different threads: made in different block loops, or in one that leaves a block axis out (then thread
// 0 of that axis stores what all of them read). What one block loop does to an element, one thread does (V2).
std::set<const ir::Stmt*> barriers(const ir::Kernel& kernel, const ir::Phase& phase);

}  // namespace fusejit::codegen::cuda
