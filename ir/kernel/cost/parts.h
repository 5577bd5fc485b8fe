// Parts of cost().
#pragma once

#include "ir/kernel/cost/cost.h"
#include "ir/kernel/prove.h"

namespace fusejit::ir {

// How often a statement under these loops and conditions runs.
double executions(const Path& path);
// 1 for all but unroll loops.
std::int64_t unrolled_copies(const ForStmt& loop);
int vector_registers(const Kernel& kernel);

}  // namespace fusejit::ir
