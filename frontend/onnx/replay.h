// A model on inputs: its nodes' meanings recorded one after another, for the shapes that are there.
#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "frontend/onnx/call.h"
#include "frontend/onnx/graph.h"

namespace fusejit::onnx {

struct Replay {
  bool training = false;
  std::optional<Device> device;  // of the inputs
  // Sets what the model keeps under the number of a value.
  std::function<void(int value, const Tensor& next)> keep;
};

// The results of the graph. `values`: by number, with inputs and initializers set. Nodes that cannot be meant are added
// to `problems`, and those that need them left out; then some results are empty.
std::vector<Tensor> replay(const Graph& graph, std::vector<Value> values, const Replay& how, Problems& problems);

}  // namespace fusejit::onnx
