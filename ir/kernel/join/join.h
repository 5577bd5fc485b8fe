// Two kernels that follow each other as one: iteration by iteration of the loops that both begin with, so that what the
// second reads of the first's is still at hand.
#pragma once

#include <optional>
#include <vector>

#include "ir/kernel/kernel.h"

namespace fusejit::ir {

// What two kernels share, by their buffers in the order of their signatures.
struct Joint {
  std::vector<int> same;    // by buffer of the second: the first's buffer that has the same memory, or -1
  std::vector<bool> inner;  // by buffer of the first: written, and read by the second alone
};

struct Joined {
  Kernel kernel;
  std::vector<int> first, second;  // by buffer: its place in the joined signature, -1: it is none any more
  std::int64_t rounds = 1;         // of the loops that both begin with
};

// Nothing where no legal kernel is found: both have one phase and begin with the same loops, of which the parallel ones
// are all, and no round reads or writes what another one writes. An inner buffer of which a round stores one element,
// where the second reads it, becomes a value; others stay buffers.
std::optional<Joined> join(const Kernel& first, const Kernel& second, const Joint& joint);

}  // namespace fusejit::ir
