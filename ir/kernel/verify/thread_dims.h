// Register locals that live longer than the loops over a block's threads (kernel-ir.md §3): their leading dims are the
// variables of block loops, so that each thread has elements of its own, from one block loop to the next.
#pragma once

#include <optional>
#include <vector>

#include "ir/kernel/kernel.h"

namespace fusejit::ir {

// The variable that the whole index is.
std::optional<VarId> only_variable(const Index& index);

// By MemId: how many leading dims of a register local are variables of block loops, which V5 has inside of its
// declaration.
std::vector<int> thread_dims(const Kernel& kernel);

// Elements of such a local that one thread has.
std::int64_t elements_of_thread(const Memory& local, int thread_dims);

}  // namespace fusejit::ir
