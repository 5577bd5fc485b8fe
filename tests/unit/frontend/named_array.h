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

// One of every dtype, the last with a name of its own.
inline std::vector<NamedArray> arrays_of_every_dtype(std::string last) {
  return {array_of<float>("w", DType::f32, {2, 3}, {1, 2, 3, 4, 5, 6}),
          array_of<double>("s", DType::f64, {}, {0.1}),
          array_of<std::int64_t>("empty", DType::i64, {0, 4}, {}),
          array_of<std::int32_t>("i", DType::i32, {1}, {-7}),
          array_of<std::int8_t>("i1", DType::i8, {3}, {-128, 0, 127}),
          array_of<std::uint8_t>("u1", DType::u8, {3}, {0, 200, 255}),
          array_of<std::int16_t>("i2", DType::i16, {2}, {-32768, 32767}),
          array_of<std::uint16_t>("h", DType::f16, {2}, {0x3c00, 1}),
          array_of<std::uint8_t>("b", DType::boolean, {3}, {1, 0, 1}),
          array_of<std::uint16_t>(std::move(last), DType::bf16, {1}, {0x3f80})};
}

}  // namespace fusejit::io
