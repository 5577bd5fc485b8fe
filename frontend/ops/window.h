// What callers say of a window, worked out.
#pragma once

#include <array>
#include <cstdint>

#include "fusejit/ops.h"

namespace fusejit {

// Top, left, bottom, right for a window of `kernel`; "same" puts the odd cell at the end. UserError, in the words of
// `op`, for "same" with a stride.
std::array<std::int64_t, 4> padding_of(const char* op, const Padding& padding, Pair kernel, Pair stride, Pair dilation);

}  // namespace fusejit
