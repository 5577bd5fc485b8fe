// What is legal between threads of a device, as part of check().
#pragma once

#include <string>

#include "scheduler/schedule/schedule.h"

namespace fusejit::scheduler {

// For sentences: "n*p/4".
std::string str(const ScheduledLoop& loop);

// The first rule that bound loops break; what check() asks of every schedule before holds.
std::string check_threads(const ir::Contraction& contraction, const Schedule& schedule, bool sums);

}  // namespace fusejit::scheduler
