// A group around an anchor: its contractions, scheduled, packed and built.
#pragma once

#include <optional>

#include "scheduler/lower/lower.h"

namespace fusejit::scheduler {

// `lanes`: on CUDA, elements of a thread's access; nothing comes back if some access cannot be that wide.
std::optional<LoweredGroup> lower_contractions(const LowerContext& context, const Group& group, int lanes);

}  // namespace fusejit::scheduler
