// ParameterStorage: the place that a module or optimiser keeps a value in. Assigning replaces the value; whoever holds
// the old value keeps it. During a recording assignments are noted, so that a failed step leaves everything as it was.
#pragma once

#include <memory>
#include <mutex>
#include <string>

#include "fusejit/tensor.h"

namespace fusejit {

namespace nn {
struct Family;  // frontend/nn/family.h
}

struct ParameterStorage {
  std::string name;
  bool trainable = false;
  mutable std::mutex mutex;
  Tensor value;
  std::shared_ptr<nn::Family> family;  // never null
};

}  // namespace fusejit
