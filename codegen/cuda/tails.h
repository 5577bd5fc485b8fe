// Ends of blocks that one thread of some axis does alone. A store outside of a block loop is done by the thread with
// index 0 on that axis (kernel-ir.md §5); what such a block ends with, once its reductions are over, serves those
// stores only: it is emitted once, under one condition, and the other threads have nothing to compute, load or wait
// for.
#pragma once

#include <map>
#include <set>

#include "ir/kernel/kernel.h"

namespace fusejit::codegen::cuda {

struct Tails {
  std::map<const ir::Block*, std::size_t> begin;          // of the statements, the first that is part of the tail
  std::map<const ir::Stmt*, const ir::Stmt*> statements;  // all within tails, and the first of theirs
};
Tails lone_tails(const ir::Kernel& kernel, const ir::Phase& phase);

}  // namespace fusejit::codegen::cuda
