// The arena of a plan: blocks whose live ranges do not meet share addresses.
#pragma once

#include <cstdint>
#include <vector>

namespace fusejit::scheduler {

struct ArenaBlock {
  std::int64_t bytes;
  int first_step, last_step;  // its live range, both steps included
  std::int64_t* offset;       // where it is put, in bytes
};

// Gives every block an offset. Returns the size of the arena in bytes.
std::int64_t place(std::vector<ArenaBlock> blocks, int steps);

}  // namespace fusejit::scheduler
