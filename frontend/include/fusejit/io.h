// Named tensors in files: NumPy's .npz (docs/ops.md §13).
#pragma once

#include <map>
#include <string>

#include "fusejit/tensor.h"

namespace fusejit {

// Names are those of PyTorch: "0.weight", "layer1.0.bn1.running_mean".
using StateDict = std::map<std::string, Tensor>;

// Written whole or not at all. FileError if it cannot be written.
void save(const StateDict& tensors, const std::string& path);
// FileError if it cannot be opened; UserError, one sentence, if it is damaged or no .npz.
StateDict load(const std::string& path);
// One .npy array.
void save(const Tensor& tensor, const std::string& path);
Tensor load_array(const std::string& path);

}  // namespace fusejit
