// Which values of the forward pass are computed again for the backward pass, so that a step takes less memory.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "scheduler/recompute/activations.h"

namespace fusejit::scheduler {

// By activation, those that are dropped so that no more than `limit` bytes are alive at any time; nothing if no set is
// found that does. The one that takes the least time of: what takes most off the bytes above the limit for its time,
// one after the other; and all but what crosses from one segment of the forward pass into the next, for segments of
// many sizes. Of each, what fits after all is kept. Deterministic.
std::optional<std::vector<bool>> drop_for_limit(const Activations& activations, std::int64_t limit);
// ... so that as little is alive as drop_for_limit() can reach, within a hundredth.
std::vector<bool> drop_for_least(const Activations& activations);

}  // namespace fusejit::scheduler
