// Calls of the functions of fusejit/composed.h and the sequences of tensor.h: those that tests/reference/composed.npz
// has PyTorch's results of, and under the same names.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "fusejit/tensor.h"

namespace fusejit::test {

using Tensors = std::vector<Tensor>;
using ComposedFunction = std::function<Tensors(const Tensors&)>;

// As recording/composed.py.
const std::map<std::string, ComposedFunction>& composed_cases();
// The arrays of the file.
const std::map<std::string, Tensor>& recorded_composed();
// Those called `<name>.<what>0`, `<name>.<what>1`, ...; empty where one is missing but a later one is there.
Tensors composed_arrays(const std::string& name, const std::string& what);

// A recorded input: of floats in that dtype, images also in that layout; evaluated.
Tensor in_form(const Tensor& x, DType dtype, Layout layout);
// What the function gives of these inputs, with its gradients in the float ones behind: of the recorded cotangents.
struct WithGradients {
  Tensors results, gradients;
  Tensors all() const;
};
WithGradients with_gradients(const std::string& name, Tensors inputs);

}  // namespace fusejit::test
