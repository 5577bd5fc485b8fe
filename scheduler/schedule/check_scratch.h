// What a task keeps in scratch beside its sums.
#pragma once

#include <string>

#include "scheduler/schedule/schedule.h"

namespace fusejit::scheduler {

// Bytes of a task's panels, at most: rows are whole vectors, and where the operand's innermost dim is not known here
// it is taken to be the one that needs most.
std::int64_t panel_bytes(const ir::Contraction& contraction, const Schedule& schedule);

// The sentence that says that they are more than a task has (kernel-ir.md, V5), or nothing.
std::string check_scratch(const ir::Contraction& contraction, const Schedule& schedule);

}  // namespace fusejit::scheduler
