// Two kernels that need nothing of each other as one: block by block of what both read, which is in a cache when the
// second comes to it.
#pragma once

#include <optional>

#include "ir/kernel/join/join.h"

namespace fusejit::ir {

// Nothing where the kernels touch what the other writes, or do not begin with loops over as many elements; Joint::inner
// is not asked. Of these loops one kernel has all in one, with nothing else in them; the other may do more before and
// behind the innermost, such as clear and hand on what it adds up. Only loops that both share out are shared out, and
// what else the kernels do, each in phases of its own, comes after. What both read is fetched ahead by the first alone.
std::optional<Joined> beside(const Kernel& first, const Kernel& second, const Joint& joint);

}  // namespace fusejit::ir
