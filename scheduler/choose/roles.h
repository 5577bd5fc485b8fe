// What choosers for all targets read off a contraction: the dims by their part in it.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "ir/ops/geometry/window.h"
#include "scheduler/choose/choose.h"

namespace fusejit::scheduler {

struct Roles {
  std::vector<int> groups;  // parallel, of both operands, or of the second and not its innermost
  std::vector<int> pixels;  // parallel, of the first alone, outermost first
  int outputs = -1;         // parallel, of the second alone, innermost
  std::vector<int> sums;    // reduced
  bool adjoin = false;      // the outputs of one group lie behind those of another, as a convolution's
};
Roles roles_of(const ir::Contraction& contraction);

// Dims by whether an index of the first operand has them beside one of `partners`, as a window over an image has a
// pixel and a tap. Of what is summed up: the taps, or a weight gradient's pixels, and the channels, or its images; of a
// weight gradient's tile: the taps and the channels.
struct ByWindow {
  std::vector<int> windows, others;
};
ByWindow by_window(const std::vector<int>& dims, const std::vector<int>& partners, const ir::Contraction& contraction);
// Groups have too few outputs for vectors of them (depthwise): lanes run along the groups.
bool runs_along_groups(const Roles& roles, const ir::Contraction& contraction);

// What lies so many bytes apart lies in one set of L1.
bool shares_a_set(std::int64_t bytes_apart);
// Products of f32 are as fast as L1 is filled from a large L2, and L3 is far: Intel's of two FMAs a cycle.
bool waits_for_l2(const Target& target);
// Few and large, where what they share is copied or added up again for each: an eighth of the target's, which are eight
// for each processor.
std::int64_t large_tasks(const Target& target);

// Largest power of two up to `most` that divides n.
std::int64_t power_of_two_in(std::int64_t n, std::int64_t most);

// Nothing where the target does not allow it, or the contraction has another form.
struct WinogradCandidate {
  Schedule schedule;
  bool pays;  // expected to be faster than the direct algorithm, or wanted whether it is or not
};
std::optional<WinogradCandidate> x86_winograd(const ir::Contraction& contraction, const Target& target,
                                              const FusedWork& fused);
// Products in a matrix unit; nothing where the target has none, or the contraction has another form.
std::optional<Schedule> x86_matrix(const ir::Contraction& contraction, const Target& target, const FusedWork& fused);
// The direct algorithm of what has weights, and of weight gradients.
Schedule x86_pixels(const ir::Contraction& contraction, const Target& target, const FusedWork& fused);
Schedule x86_weights(const ir::Contraction& contraction, const Target& target, const FusedWork& fused);
std::vector<Schedule> x86_candidates(const ir::Contraction& contraction, const Target& target, const FusedWork& fused);
std::vector<Schedule> x86_candidates(const Domain& domain, const Target& target, const DomainElements& elements);
// Where an operand is computed, and of large ones; nothing where the contraction has another form.
std::optional<Schedule> cuda_shared_panels(const ir::Contraction& contraction, const FusedWork& fused);
std::vector<Schedule> cuda_candidates(const Domain& domain, const Target& target, const DomainElements& elements);
std::vector<Schedule> cuda_candidates(const ir::Contraction& contraction, const FusedWork& fused);

}  // namespace fusejit::scheduler
