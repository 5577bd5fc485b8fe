// Arguments made up for a graph: the same for the same seed, on every machine.
#pragma once

#include <cstdint>
#include <random>

#include "ir/base/scalar.h"
#include "runtime/buffer.h"

namespace fusejit::tools {

// Floats are small normal numbers, integers are 0 and booleans true: what every op can take.
inline runtime::Buffer seeded_argument(const Type& type, std::uint32_t seed) {
  runtime::Buffer buffer = runtime::Buffer::allocate(type);
  std::mt19937 random(seed);
  std::normal_distribution<double> normal(0, 0.1);
  for (std::int64_t i = 0; i < type.elements(); ++i) {
    const double number = is_float(type.dtype) ? normal(random) : type.dtype == boolean ? 1 : 0;
    ir::store_element(buffer.data(), type.dtype, i, ir::cast(ir::Scalar::of(number), type.dtype));
  }
  return buffer;
}

}  // namespace fusejit::tools
