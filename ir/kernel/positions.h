// Positions that argmax and argmin keep beside their values, turn by turn of a reduction.
#pragma once

#include "ir/kernel/kernel.h"

namespace fusejit::ir {

// True if each turn of this argmax or argmin yields a greater position than all turns before, so that the first of
// equals is the one that is kept already: the position is an index that grows with the loop, or what a reduction of
// the same kind inside of it keeps of such an index. Every loop has constant bounds and at least one turn.
bool positions_ascend(const ForStmt& loop);

}  // namespace fusejit::ir
