// Errors that say where they happened: the layer of a user's network, the step of a plan.
#pragma once

#include <string>

#include "fusejit/error.h"

namespace fusejit::ir {

// Throws an error of the same type with another sentence; one of a type that holds more than its sentence as it is.
[[noreturn]] void throw_with_sentence(const Error& error, const std::string& sentence);

}  // namespace fusejit::ir
