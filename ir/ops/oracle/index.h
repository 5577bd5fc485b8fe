// Walks over the elements of a shape in row-major order, for the whole-tensor `evaluate` functions.
#pragma once

#include <array>
#include <cstdint>
#include <span>

#include "fusejit/shape.h"

namespace fusejit::ir {

// f(row-major position, index of each dim)
template <class F>
void each_index(const Shape& shape, F f) {
  std::array<std::int64_t, kMaxRank> index{};
  const std::span<const std::int64_t> view(index.data(), static_cast<std::size_t>(shape.rank()));
  for (std::int64_t position = 0; position < shape.elements(); ++position) {
    f(position, view);
    for (int d = shape.rank(); d-- > 0;) {
      if (++index[static_cast<std::size_t>(d)] < shape[d]) break;
      index[static_cast<std::size_t>(d)] = 0;
    }
  }
}

inline std::int64_t row_major(const Shape& shape, std::span<const std::int64_t> index) {
  std::int64_t position = 0;
  for (int d = 0; d < shape.rank(); ++d) position = position * shape[d] + index[static_cast<std::size_t>(d)];
  return position;
}

}  // namespace fusejit::ir
