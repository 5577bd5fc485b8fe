// ParameterStorage: the place that a module or optimiser keeps a value in. Assigning replaces the value; whoever holds
// the old value keeps it. During a recording assignments are noted, so that a failed step leaves everything as it was.
#pragma once

#include <mutex>
#include <string>

#include "fusejit/tensor.h"

namespace fusejit {

struct ParameterStorage {
  std::string name;
  bool trainable = false;
  mutable std::mutex mutex;
  Tensor value;
};

}  // namespace fusejit
