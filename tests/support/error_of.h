// What an error says.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <utility>

#include "fusejit/error.h"

namespace fusejit::testing {

// The message of the E that `call` throws, of which there must be one; other errors pass through.
template <class E = UserError, class F>
std::string error_of(F&& call) {
  try {
    std::forward<F>(call)();
  } catch (const E& error) {
    return error.what();
  }
  ADD_FAILURE() << "nothing was thrown";
  return {};
}

}  // namespace fusejit::testing
