// The default random generator: counter-based (Philox4x32-10), so the same seed gives the same bits on every back end
// and for every number of threads. Drawing is recorded; the seed is an argument of the trace.
#pragma once

#include <cstdint>
#include <vector>

namespace fusejit {

// Restarts the default generator.
void manual_seed(std::uint64_t seed);

// A random order of 0 .. count - 1, from the seed alone (Fisher-Yates over Philox words).
std::vector<std::int64_t> random_permutation(std::int64_t count, std::uint64_t seed);
// A seed that the default generator hands out once.
std::uint64_t next_seed();

}  // namespace fusejit
