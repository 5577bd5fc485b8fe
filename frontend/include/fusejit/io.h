// Named tensors in files: .safetensors where the file's name ends so, NumPy's .npz where it ends so or has no ending;
// another ending (.pt, .bin) is a UserError. One tensor in a .npy (docs/ops.md section 13); and what is recorded, as a
// graph. Every dtype; in an .npz bf16 travels as <u2 under a name that ends in ".bf16".
//
//   fj::save({{"x", fj::tensor<float>({1, 2})}}, path);
//   fj::Tensor x = fj::load(path).at("x");
#pragma once

#include <map>
#include <string>
#include <vector>

#include "fusejit/tensor.h"

namespace fusejit {

// Names are those of PyTorch: "0.weight", "layer1.0.bn1.running_mean".
using StateDict = std::map<std::string, Tensor>;

// What a .safetensors says beside its tensors.
using Metadata = std::map<std::string, std::string>;

// Written whole or not at all. FileError if it cannot be written; UserError for metadata in another file than a
// .safetensors, and in one of those for names and metadata that are no UTF-8 and the name "__metadata__".
//   fj::save({{"x", fj::ones({2})}}, path, {{"format", "pt"}});  // as PyTorch's readers of .safetensors ask
//   std::cout << fj::load_metadata(path).at("format");
void save(const StateDict& tensors, const std::string& path, const Metadata& metadata = {});
// FileError if it cannot be opened; UserError, one sentence, if it is damaged, of another format than its name says, or
// holds an array of another dtype than tensors have; DeviceError if its arrays need more memory than the machine has.
StateDict load(const std::string& path);
// Empty for an .npz. Errors as above; of a .safetensors no elements are read.
Metadata load_metadata(const std::string& path);
// One .npy array; errors as above. UserError for the name of a .safetensors.
void save(const Tensor& tensor, const std::string& path);
Tensor load_array(const std::string& path);

// Writes what the tensors are still to be computed from as the text of a graph (.fj, docs/ops.md), which fusejit-dump
// shows and runs; nothing is computed, so this works for graphs too that cannot be compiled. Values that are there are
// the parameters p0, p1, ..., in order of first use; the tensors are the results. UserError for no tensor at all or an
// empty one, FileError if it cannot be written; then nothing has changed under the name.
//   fj::Tensor p = fj::tensor<float>({1, 2});
//   fj::save_graph(path, {fj::exp(p) * 2});
void save_graph(const std::string& path, const std::vector<Tensor>& tensors);

}  // namespace fusejit
