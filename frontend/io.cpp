#include "fusejit/io.h"

#include <span>
#include <utility>

#include "frontend/context.h"
#include "frontend/evaluation/trace.h"
#include "frontend/io/array_file.h"
#include "frontend/io/files.h"
#include "frontend/io/npz.h"
#include "ir/base/check.h"

namespace fusejit {
namespace {

io::NamedArray array_of(const std::string& name, const Tensor& tensor) {
  FJ_CHECK(tensor.defined(), "save: tensor '{}' is empty", name);
  io::NamedArray array{name, tensor.dtype(), tensor.shape(), {}};
  array.bytes.resize(static_cast<std::size_t>(tensor.bytes()));
  tensor.copy_to(array.bytes.data());
  return array;
}

Tensor tensor_of(const io::NamedArray& array) { return from_host(array.bytes.data(), array.shape, array.dtype); }

}  // namespace

void save(const StateDict& tensors, const std::string& path, const Metadata& metadata) {
  std::vector<Tensor> values;
  for (const auto& [name, tensor] : tensors) values.push_back(tensor);
  eval(values);
  std::vector<io::NamedArray> arrays;
  for (const auto& [name, tensor] : tensors) arrays.push_back(array_of(name, tensor));
  io::write_arrays(path, std::move(arrays), metadata);
}

StateDict load(const std::string& path) {
  StateDict tensors;
  for (const io::NamedArray& array : io::read_arrays(path)) tensors.emplace(array.name, tensor_of(array));
  return tensors;
}

Metadata load_metadata(const std::string& path) { return io::read_metadata(path); }

void save(const Tensor& tensor, const std::string& path) {
  FJ_CHECK(!io::is_safetensors(path), "save: {} holds tensors by name, one alone is written as an .npy", path);
  io::write_npy(path, array_of("", tensor));
}
Tensor load_array(const std::string& path) { return tensor_of(io::read_npy(path)); }

void save_graph(const std::string& path, const std::vector<Tensor>& tensors) {
  FJ_CHECK(!tensors.empty(), "save_graph: there are no tensors");
  for (const Tensor& tensor : tensors) FJ_CHECK(tensor.defined(), "save_graph: a tensor is empty");
  Trace trace;
  {
    const std::lock_guard lock(context().graph_mutex);
    for (const Tensor& tensor : tensors) trace.add_result(tensor.state()->value);
  }
  const std::string text = ir::print(trace.graph("main"));
  io::write_file(path, std::as_bytes(std::span(text.data(), text.size())));
}

}  // namespace fusejit
