// Exit codes of all programs (docs/ops.md §14).
#pragma once

#include <exception>
#include <new>
#include <stdexcept>
#include <string>

#include "fusejit/error.h"

namespace fusejit::tools {

enum ExitCode {
  kDone = 0,
  kUsage = 1,
  kUser = 2,
  kDifferent = 3,
  kUnsupported = 4,
  kFile = 5,
  kDevice = 6,
  kInternal = 7,
  kOverBudget = 124,
  kInterrupted = 130
};

// A wrong command line: exit code 1.
struct UsageError {
  std::string sentence;
};

inline ExitCode exit_code_of(const std::exception& error) {
  if (dynamic_cast<const UserError*>(&error)) return kUser;
  if (dynamic_cast<const UnsupportedError*>(&error)) return kUnsupported;
  if (dynamic_cast<const FileError*>(&error)) return kFile;
  if (dynamic_cast<const DeviceError*>(&error)) return kDevice;
  const bool no_memory = dynamic_cast<const std::bad_alloc*>(&error) || dynamic_cast<const std::length_error*>(&error);
  return no_memory ? kDevice : kInternal;
}

// One sentence for people.
inline std::string sentence_of(const std::exception& error) {
  const bool no_memory = dynamic_cast<const std::bad_alloc*>(&error) || dynamic_cast<const std::length_error*>(&error);
  return no_memory ? "cpu: out of memory" : error.what();
}

}  // namespace fusejit::tools
