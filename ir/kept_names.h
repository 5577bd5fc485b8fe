// The lock of kept_name() (origin.h), for whoever forks: a child must not find it taken by a thread that it does not
// have.
#pragma once

#include <mutex>

namespace fusejit::ir {

std::mutex& kept_names_mutex();

}  // namespace fusejit::ir
