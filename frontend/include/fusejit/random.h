// The default random generator: counter-based (Philox4x32-10), so the same seed gives the same bits on every back end
// and for every number of threads. Drawing is recorded; the seed is an argument of the trace.
#pragma once

#include <cstdint>
#include <vector>

namespace fusejit {

//   fj::manual_seed(1);
//   std::vector<float> first = fj::rand({3}).to_vector<float>();
//   fj::manual_seed(1);
//   std::vector<float> again = fj::rand({3}).to_vector<float>();  // the same numbers

// Restarts the default generator. A program that never calls this starts from 0.
void manual_seed(std::uint64_t seed);

// Where the default generator stands: the numbers drawn after set_rng_state() are those that were drawn after
// get_rng_state().
struct RngState {
  std::uint64_t seed = 0;
  std::uint64_t drawn = 0;  // seeds handed out since manual_seed()
};
RngState get_rng_state();
void set_rng_state(const RngState& state);

// A random order of 0 .. count - 1, from the seed alone (Fisher-Yates over Philox words). UserError for a negative
// count.
std::vector<std::int64_t> random_permutation(std::int64_t count, std::uint64_t seed);
// A seed that the default generator hands out once.
std::uint64_t next_seed();

}  // namespace fusejit
