// The graph interpreter: what a Graph means, on the CPU, slow and obvious. Every engine is compared with it.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include "ir/graph.h"

namespace fusejit::ir {

// Elements in row-major order of the logical shape, whatever the layout in the type.
struct Array {
  Type type;
  std::vector<std::byte> bytes;

  explicit Array(Type t);
  Scalar at(std::int64_t index) const { return load_element(bytes.data(), type.dtype, index); }
  void set(std::int64_t index, Scalar value) { store_element(bytes.data(), type.dtype, index, value); }
  template <class T>
  std::span<const T> as() const {
    return {reinterpret_cast<const T*>(bytes.data()), bytes.size() / sizeof(T)};
  }
  template <class T>
  std::span<T> as() {
    return {reinterpret_cast<T*>(bytes.data()), bytes.size() / sizeof(T)};
  }
};

// What a row's `evaluate` sees. Operands that are numbers have a null array.
struct EvalContext {
  const Node& node;
  std::span<const Array* const> operands;
  Array& result;
};

// Arguments in the order of the parameters. UserError if one has another type.
std::vector<Array> interpret(const Graph& graph, std::span<const Array> arguments);

}  // namespace fusejit::ir
