// Kernels with other schedules than the chosen ones, beside those with them.
#pragma once

#include "tools/fusejit-dump/measure/measured.h"
#include "tools/fusejit-dump/table.h"

namespace fusejit::tools {

// A plan and how long it took.
struct Timed {
  const scheduler::Plan& plan;
  const Measured& measured;
};

// A table of the kernels whose schedules differ, and what became of the whole. A ratio is the median of those of runs
// that followed each other: whatever else the machine does, it does to both.
std::string compared_text(const Timed& chosen, const Timed& replaced);
Json compared_json(const Timed& chosen, const Timed& replaced);

}  // namespace fusejit::tools
