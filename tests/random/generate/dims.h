#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace fusejit::testing {

using Dims = std::vector<std::int64_t>;

// As an attribute takes it.
inline std::span<const std::int64_t> list(const Dims& dims) { return dims; }

}  // namespace fusejit::testing
