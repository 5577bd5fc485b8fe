// From the options that users set, words and numbers, to those of a session.
#pragma once

#include "fusejit/runtime.h"
#include "runtime/session.h"

namespace fusejit {

// Throws UserError that names the words where one is not known.
runtime::SessionOptions session_options(const Options& options);

}  // namespace fusejit
