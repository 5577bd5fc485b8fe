// Concatenations in place: who computes a part stores it in the concatenation's memory, and nothing is copied.
#pragma once

#include <vector>

#include "scheduler/fuse/group.h"

namespace fusejit::scheduler {

// Concatenations of channels in NHWC whose parts are computed here, each for this one alone, and stored anyway, or in
// place of what their anchors store: as homes, by node, with those of the parts. `grouping` says what is stored where
// every concatenation is computed where it is read. Not `refused` ones (by node; empty: none), whose parts cannot.
std::vector<Home> find_homes(const ir::Graph& graph, const std::vector<bool>& alone, const Grouping& grouping,
                             const std::vector<bool>& refused);

// Concatenations, of those that `grouping` has in place, that cannot be: a part is not stored after all, or not over
// its own elements, or a kernel packs what is in their memory as weights, or reads words of it where it uses more of
// it.
std::vector<int> unfit_homes(const ir::Graph& graph, const Grouping& grouping);

// The parts of a concatenation in place that groups store, those of its parts included; of anything else itself.
std::vector<int> stored_parts(const ir::Graph& graph, const Grouping& grouping, int node);

}  // namespace fusejit::scheduler
