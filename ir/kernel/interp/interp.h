// The kernel interpreter: the serial meaning of a Kernel (kernel-ir.md §5), with checks that a compiled kernel cannot
// make: reading poison and leaving an element of a `write` buffer unstored are errors (V10), and so is a store over one
// that nothing has read (V11).
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "ir/kernel/cost/cost.h"
#include "ir/kernel/kernel.h"

namespace fusejit::ir {

enum class TaskOrder : std::uint8_t { ascending, descending, shuffled };

struct InterpretOptions {
  TaskOrder order = TaskOrder::ascending;  // of tasks, blocks and lanes: must change no bit
  std::uint64_t seed = 1;                  // of the shuffle
  bool check_poison = true;
  std::vector<MemoryTraffic>* traffic = nullptr;  // becomes what traffic(kernel) says of the text, as it was seen
};

// `buffers[i]` is the memory of the i-th buffer parameter (scalars skipped), dense, in its physical order;
// `scalars[i]` the i-th scalar parameter. Throws InternalError where V10 or V11 is broken.
void interpret(const Kernel& kernel, std::span<void* const> buffers, std::span<const Scalar> scalars,
               const InterpretOptions& options = {});

}  // namespace fusejit::ir
