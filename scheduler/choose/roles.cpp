#include "scheduler/choose/roles.h"

#include <algorithm>

#include "ir/base/check.h"
#include "scheduler/choose/tuning.h"

namespace fusejit::scheduler {

std::int64_t power_of_two_in(std::int64_t n, std::int64_t most) {
  std::int64_t power = 1;
  while (2 * power <= most && n % (2 * power) == 0) power *= 2;
  return power;
}

bool shares_a_set(std::int64_t bytes_apart) { return bytes_apart % tuning::kBytesOfSets == 0; }

bool waits_for_l2(const Target& target) {
  return target.vector_registers() >= 32 && target.fma_per_cycle == 2 && !target.dot2_is_faster;
}

bool exceeds_caches(const Target& target, std::int64_t bytes) {
  return bytes >= std::min(target.l3_bytes / 2, tuning::kMostCachedBytes);
}

std::int64_t bytes_of_round(const Target& target) {
  return target.isa == Isa::cuda ? tuning::kRoundOfBlock : target.l2_bytes / tuning::kRoundOfL2;
}

std::int64_t large_tasks(const Target& target) { return std::max(1, target.tasks / tuning::kTasksOfLargeTask); }

Roles roles_of(const ir::Contraction& c) {
  Roles roles;
  for (std::size_t i = 0; i < c.dims.size(); ++i) {
    const int d = static_cast<int>(i);
    if (c.dims[i].reduced) {
      roles.sums.push_back(d);
    } else if (!c.b.mentions(d)) {
      roles.pixels.push_back(d);
    } else if (c.a.mentions(d)) {
      roles.groups.push_back(d);
    } else {
      if (roles.outputs >= 0) roles.groups.push_back(roles.outputs);  // a batch of one operand for many of the other
      roles.outputs = d;
    }
  }
  FJ_ASSERT(roles.outputs >= 0, "no dim of the second operand alone in {}", str(c));
  for (const int g : roles.groups) roles.adjoin |= c.share_index(g, roles.outputs);
  return roles;
}

ByWindow by_window(const std::vector<int>& dims, const std::vector<int>& partners, const ir::Contraction& c) {
  ByWindow by;
  for (const int d : dims) {
    const bool in_window = std::any_of(c.a.index.begin(), c.a.index.end(), [&](const ir::DimSum& sum) {
      return sum.coefficient_of(d) != 0 && std::any_of(partners.begin(), partners.end(),
                                                       [&](int partner) { return sum.coefficient_of(partner) != 0; });
    });
    (in_window ? by.windows : by.others).push_back(d);
  }
  return by;
}

bool runs_along_groups(const Roles& roles, const ir::Contraction& c) {
  std::int64_t groups = 1;
  for (const int d : roles.groups) groups *= c.dims[static_cast<std::size_t>(d)].extent;
  const std::int64_t outputs = c.dims[static_cast<std::size_t>(roles.outputs)].extent;
  if (!roles.adjoin || groups == 1 || power_of_two_in(outputs, tuning::kLeastLanes) == tuning::kLeastLanes)
    return false;
  return groups > tuning::kFewGroups || outputs < 2 * tuning::kLeastLanes;
}

std::vector<Schedule> candidates(const ir::Contraction& contraction, const Target& target, const FusedWork& fused) {
  return target.isa == Isa::cuda ? cuda_candidates(contraction, fused) : x86_candidates(contraction, target, fused);
}

std::vector<Schedule> candidates(const Domain& domain, const Target& target, const DomainElements& elements) {
  return target.isa == Isa::cuda ? cuda_candidates(domain, target, elements) : x86_candidates(domain, target, elements);
}

}  // namespace fusejit::scheduler
