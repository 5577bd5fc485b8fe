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

// One phase an emitter; then, where the group has sums, one that combines what all of them left: phases that reduce
// over parts of one set of elements share one state. An emitter has parts(), how many partial states it leaves, and
// emit(work, first_part), where it leaves them. `combine(work, parts)` writes the last phase.
template <typename Emitter, typename Combine>
void emit_with_sums(GroupKernel& kernel, const Accumulators& accumulators, std::vector<Emitter>& emitters,
                    const Combine& combine) {
  std::int64_t parts = 0;
  for (const Emitter& emitter : emitters) parts += emitter.parts();
  std::vector<ir::MemId> work;
  if (!accumulators.list().empty()) work = declare_partials(kernel, accumulators, parts);
  std::int64_t first_part = 0;
  for (Emitter& emitter : emitters) {
    if (&emitter != &emitters.front()) kernel.builder().next_phase();
    emitter.emit(work, first_part);
    first_part += emitter.parts();
  }
  if (!work.empty()) combine(work, parts);
}

}  // namespace fusejit::scheduler
