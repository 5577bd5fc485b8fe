// Two kernels that need nothing of each other as one: block by block of what both read, which is in a cache when the
// second comes to it.
#pragma once

#include <optional>

#include "ir/kernel/join/join.h"

namespace fusejit::ir {

// Nothing where the kernels touch what the other writes, or do not begin with loops over as many elements; Joint::inner
// is not asked. At one level one of the kernels may do more before and behind its loop, such as clear and hand on what
// it adds up; loops that neither shares out stay each kernel's own. Only loops that both share out are shared out, and
// what else the kernels do, each in phases of its own, comes after. What both fetch ahead is fetched by the first
// alone.
std::optional<Joined> beside(const Kernel& first, const Kernel& second, const Joint& joint);

}  // namespace fusejit::ir
