// What is legal of panels: where they are built, what one of tiles is of, and that scratch has room for them.
#pragma once

#include <string>

#include "scheduler/schedule/schedule.h"

namespace fusejit::scheduler {

// Four-byte words of a cache line: rows of a matrix unit's panels are whole lines.
inline constexpr std::int64_t kWordsOfLine = 16;

// The first rule that is broken, as a sentence; empty: they can be built.
std::string check_panels(const ir::Contraction& contraction, const Schedule& schedule);

}  // namespace fusejit::scheduler
