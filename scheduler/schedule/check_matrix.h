// What a schedule of products in a matrix unit has to be, beside what every schedule has.
#pragma once

#include <string>

#include "scheduler/schedule/schedule.h"

namespace fusejit::scheduler {

std::string check_matrix(const ir::Contraction& contraction, const Schedule& schedule, const Target& target);

}  // namespace fusejit::scheduler
