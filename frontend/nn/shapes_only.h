// Modules without values: for graphs of models that are looked at or compiled, and not run. Drawing the weights of a
// ResNet-50 takes longer than planning its training step.
#pragma once

#include "fusejit/tensor.h"

namespace fusejit::nn {

// While one lives, modules that this thread makes or converts hold leaves that have a type and no value.
class ShapesOnly {
 public:
  ShapesOnly();
  ~ShapesOnly();
  ShapesOnly(const ShapesOnly&) = delete;
  ShapesOnly& operator=(const ShapesOnly&) = delete;
  static bool is_on();

 private:
  const bool before_;
};

// Such a leaf.
Tensor without_value(const Type& type);

}  // namespace fusejit::nn
