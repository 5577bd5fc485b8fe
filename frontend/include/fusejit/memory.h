// Bytes in use by tensors, plans' arenas and workspace.
#pragma once

#include <cstdint>

namespace fusejit::memory {

std::int64_t allocated();
// The most since the start or the last reset.
std::int64_t peak();
void reset_peak();

}  // namespace fusejit::memory
