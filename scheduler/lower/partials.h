// Partial states of reductions: what parallel tasks leave in `work`, and the phase that combines them.
#pragma once

#include "scheduler/lower/accumulator.h"

namespace fusejit::scheduler {

// One array per component: [parts, kept axes...].
std::vector<ir::MemId> declare_partials(GroupKernel& kernel, const Accumulators& accumulators, std::int64_t parts);
// Index of part `part` for the kept axes of `point` (one value per axis of the space).
std::vector<ir::Index> partial_index(const GroupKernel& kernel, const ir::Index& part,
                                     const std::vector<ir::Index>& point);
// The next phase: parts in ascending order for every kept element (sums of f32 meet in f64), then finish().
void combine_partials(GroupKernel& kernel, Accumulators& accumulators, const std::vector<ir::MemId>& work,
                      std::int64_t parts, std::int64_t total);

}  // namespace fusejit::scheduler
