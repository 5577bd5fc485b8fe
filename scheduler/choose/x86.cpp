#include "scheduler/choose/roles.h"
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

}  // namespace

std::vector<Schedule> x86_candidates(const ir::Contraction& contraction, const Target& target, const FusedWork& fused) {
  std::vector<Schedule> list{with_panels_that_fit(
      contraction, (contraction.b.weights ? x86_pixels : x86_weights)(contraction, target, fused))};
  const std::optional<Schedule> matrix = x86_matrix(contraction, target, fused);
  if (matrix && check(contraction, *matrix, target, fused.sums).empty()) list.insert(list.begin(), *matrix);
  if (const std::optional<WinogradCandidate> winograd = x86_winograd(contraction, target, fused))
    list.insert(winograd->pays ? list.begin() : list.end(), winograd->schedule);
  return list;
}

}  // namespace fusejit::scheduler
