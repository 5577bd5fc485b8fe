// Buffers between two kernels that have become one: what a round stores, and what it loads of that.
#pragma once

#include <functional>
#include <vector>

#include "ir/kernel/kernel.h"
#include "ir/kernel/walk.h"

namespace fusejit::ir {

// Where a statement of `body` itself is the one store to a buffer in it, what follows and loads that element takes the
// value that was stored: the loads are dead then. What names an element or decides a side stays loaded.
void forward_store(Block& body, MemId buffer);

// Statements of a block and of all blocks in it.
void erase_statements(Block& block, const std::function<bool(const Stmt&)>& which);
void remove_accesses(Block& block, MemId buffer);

// Makes the buffer a local of `body`, which stands in loops over `outer`, whose ranges are known, and is all that
// touches it: of each dim a round keeps what does not depend on `outer`. False where different accesses do so
// differently.
bool make_local(Kernel& kernel, Block& body, const VariableRanges& ranges, const std::vector<VarId>& outer,
                MemId buffer);

}  // namespace fusejit::ir
