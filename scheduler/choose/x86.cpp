#include "scheduler/choose/roles.h"

namespace fusejit::scheduler {

std::vector<Schedule> x86_candidates(const ir::Contraction& contraction, const Target& target, const FusedWork& fused) {
  std::vector<Schedule> list{(contraction.b.weights ? x86_pixels : x86_weights)(contraction, target, fused)};
  if (std::optional<Schedule> matrix = x86_matrix(contraction, target, fused)) list.insert(list.begin(), *matrix);
  if (const std::optional<WinogradCandidate> winograd = x86_winograd(contraction, target, fused))
    list.insert(winograd->pays ? list.begin() : list.end(), winograd->schedule);
  return list;
}

}  // namespace fusejit::scheduler
