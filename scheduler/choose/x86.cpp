#include <algorithm>

#include "scheduler/choose/roles.h"
#include "scheduler/choose/tuning.h"
#include "scheduler/schedule/check_panels.h"

namespace fusejit::scheduler {
namespace {

// Rows of a window may be more than any cache holds: taps far apart, thousands of channels. Then operands are read
// where they are.
Schedule with_panels_that_fit(const ir::Contraction& contraction, Schedule schedule) {
  if (check_panels(contraction, schedule).empty()) return schedule;
  schedule.panel_a.clear(), schedule.panel_b.clear();
  schedule.tiles_a = schedule.fetch_b = false;
  schedule.fetch = {};
  if (schedule.pack_b == 0 && !schedule.dot.empty()) {  // pairs are made by panels
    std::erase_if(schedule.unroll, [&](const Extent& extent) { return extent.dims == std::vector{schedule.dot}; });
    schedule.dot.clear();
  }
  return schedule;
}

// Where dot products are few and the epilogue reads tensors its loads, and all that waits for them, are done among the
// next tile's products: a part of it with each block of terms, of two turns at least, so that what it has in registers
// is not there in the innermost loop.
Schedule with_late_tiles(const ir::Contraction& contraction, Schedule schedule, const Target& target,
                         const FusedWork& fused) {
  if (schedule.dot.empty() || fused.elements_read == 0 || waits_for_l2(target) || schedule.tile.size() != 1 ||
      schedule.unroll.size() != 1 || schedule.inner.empty() || schedule.inner.back().dims != schedule.unroll[0].dims)
    return schedule;
  const std::string& terms = schedule.unroll[0].dims[0];
  const std::int64_t all = contraction.dim(terms).extent;
  for (const ir::DimSum& sum : contraction.result)  // others without terms lie between: too much at once
    for (const ir::DimSum::Term& term : sum.terms)
      if (term.coefficient > 1) return schedule;
  Schedule late = schedule;
  late.finish_late = true;
  const auto turns = [&] { return all / late.held(terms) / late.tile[0].count; };  // of the loop, for each element
  if (turns() < 2 && late.unroll[0].count % 4 == 0) late.unroll[0].count /= 2;
  const std::int64_t block = std::max<std::int64_t>(turns(), 2) * late.held(terms);
  if (all > tuning::kTermsOfLateTile || turns() < 1) return schedule;
  if (block < all) late.inner.insert(late.inner.end() - 1, {{terms}, block});
  return check(contraction, late, target, fused.sums).empty() ? late : schedule;
}

}  // namespace

std::vector<Schedule> x86_candidates(const ir::Contraction& contraction, const Target& target, const FusedWork& fused) {
  const Schedule direct = (contraction.b.weights ? x86_pixels : x86_weights)(contraction, target, fused);
  std::vector<Schedule> list{with_late_tiles(contraction, with_panels_that_fit(contraction, direct), target, fused)};
  const std::optional<Schedule> matrix = x86_matrix(contraction, target, fused);
  if (matrix && check(contraction, *matrix, target, fused.sums).empty()) list.insert(list.begin(), *matrix);
  if (const std::optional<WinogradCandidate> winograd = x86_winograd(contraction, target, fused))
    list.insert(winograd->pays ? list.begin() : list.end(), winograd->schedule);
  return list;
}

}  // namespace fusejit::scheduler
