// Which of cuDNN's activations some primitive ops are: those that the op table's rows expand to.
#pragma once

#include <optional>

#include "ir/graph.h"
#include "runtime/cudnn/call.h"

namespace fusejit::runtime::cudnn {

struct FoundActivation {
  Activation activation = Activation::none;
  float slope = 0;  // of leaky_relu
  const ir::Node* input = nullptr;
};
// The activation whose result `node` is, if it is one.
std::optional<FoundActivation> find_activation(const ir::Node& node);

}  // namespace fusejit::runtime::cudnn
