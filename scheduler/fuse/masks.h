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

// True if the group that stores the mask may store it one bit an element, and the groups that read it may read that.
bool can_be_bits(const ir::Graph& graph, const Target& target, const Grouping& grouping, int mask, int home,
                 const std::vector<int>& readers);

}  // namespace fusejit::scheduler
