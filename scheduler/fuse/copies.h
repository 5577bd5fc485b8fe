// R7: what is stored for several readers, an anchor among them, is stored by the copy that the anchor reads.
#pragma once

#include <vector>

#include "scheduler/fuse/group.h"
#include "scheduler/fuse/links.h"

namespace fusejit::scheduler {

// A join is read at once by the convolution behind it, and kept for the next join and for gradients. Where that
// convolution copies each element of it once, to a panel, it can compute and store the join by the way, so that nobody
// reads it back for the convolution. To be called once the groups, and the masks that they keep, stand: what computes
// such an operand then has no group of its own any more, but an empty one. `alone`: by node; empty: none.
// Not for an input gradient that may be one kernel with the weights' (`joins_gradients`, R9): both read what is stored.
void store_in_copies(const ir::Graph& graph, const Target& target, bool joins_gradients, const std::vector<bool>& alone,
                     GroupLinks& links, Grouping& grouping);

}  // namespace fusejit::scheduler
