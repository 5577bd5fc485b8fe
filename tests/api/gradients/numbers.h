#pragma once

#include <vector>

#include "fusejit/tensor.h"

namespace fusejit {

// Of this shape, in [-1, 1], others for every seed.
inline Tensor numbers(const Shape& shape, int seed) {
  std::vector<double> values(static_cast<std::size_t>(shape.elements()));
  for (std::size_t i = 0; i < values.size(); ++i) {
    values[i] = static_cast<double>((i * 7919 + static_cast<std::size_t>(seed) * 104729) % 1009) / 504.5 - 1;
  }
  return from_host(values, shape);
}

}  // namespace fusejit
