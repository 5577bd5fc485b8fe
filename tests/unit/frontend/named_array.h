#pragma once

#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "frontend/io/named_array.h"

namespace fusejit::io {

// An array of a file, of these values.
template <class T>
NamedArray array_of(std::string name, DType dtype, Shape shape, std::vector<T> values) {
  NamedArray array{std::move(name), dtype, shape, {}};
  array.bytes.resize(values.size() * sizeof(T));
  if (!values.empty()) std::memcpy(array.bytes.data(), values.data(), array.bytes.size());
  return array;
}

}  // namespace fusejit::io
