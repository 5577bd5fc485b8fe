// R8: masks that are kept, one bit an element, for kernels that would read a whole value for nothing but its sign.
#pragma once

#include <vector>

#include "scheduler/fuse/group.h"
#include "scheduler/fuse/links.h"

namespace fusejit::scheduler {

// What computes a comparison reads everything that is compared: the gradient of a relu behind a join reads what was
// added, a whole value, for its sign. Where an earlier kernel has all that at hand and storing the comparison there
// lets later ones read less in all, it is stored. To be called once the groups stand. `users`: by node.
void keep_masks(const ir::Graph& graph, const Target& target, const std::vector<std::vector<int>>& users,
                GroupLinks& links, Grouping& grouping);

}  // namespace fusejit::scheduler
