// What is legal between threads of a device, as part of check().
#pragma once

#include <string>

#include "scheduler/schedule/schedule.h"

namespace fusejit::scheduler {

// For sentences: "n*p/4".
std::string str(const ScheduledLoop& loop);

// The first rule that bound loops break; what check() asks of every schedule before holds.
std::string check_threads(const ir::Contraction& contraction, const Schedule& schedule, bool sums);

// The same of a block's size, and of what each of its threads may take; 0: nothing is said.
std::string check_block(std::int64_t threads, std::int64_t registers);

}  // namespace fusejit::scheduler
