// What is given to a load_state_dict() must be what the state_dict() of the same object has, by names and types.
#pragma once

#include <string>

#include "fusejit/io.h"

namespace fusejit::nn {

// The UserError of check_complete (fit.h) unless it is.
void check_state(const StateDict& own, const StateDict& given, const std::string& source, const char* owner);

}  // namespace fusejit::nn
