// Philox4x32-10 (ops.md §11): the random words of `rand` and `dropout`.
#pragma once

#include <array>
#include <cstdint>

namespace fusejit::ir {

// The four words of counter (lo counter, hi counter, lo stream, hi stream) and key (lo seed, hi seed).
std::array<std::uint32_t, 4> philox(std::int64_t counter, std::int64_t stream, std::int64_t seed);

}  // namespace fusejit::ir
