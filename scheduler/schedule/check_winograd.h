// What is legal of a schedule with `algorithm winograd`, beyond names, vectors and registers.
#pragma once

#include <string>

#include "scheduler/schedule/schedule.h"

namespace fusejit::scheduler {

// Bytes of scratch a task: of the 16 MiB that there are (kernel-ir.md, V5).
inline constexpr std::int64_t kMostWinogradScratch = std::int64_t{15} << 20;

// The first rule that is broken, as a sentence; empty: it can be built.
std::string check_winograd(const ir::Contraction& contraction, const Schedule& schedule);

}  // namespace fusejit::scheduler
