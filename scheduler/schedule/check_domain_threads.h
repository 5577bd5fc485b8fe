// What is legal between threads of a device in a group without an anchor, as part of check().
#pragma once

#include "scheduler/schedule/domain.h"

namespace fusejit::scheduler {

std::string check_domain_threads(const Domain& domain, const Schedule& schedule);

}  // namespace fusejit::scheduler
