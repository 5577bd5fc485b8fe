// Whole training steps in tests: arguments on which they are sound, and how far results are apart.
#pragma once

#include <algorithm>
#include <cmath>
#include <random>
#include <vector>

#include "ir/graph.h"
#include "ir/interp.h"
#include "runtime/buffer.h"

namespace fusejit::test {

// Positive numbers and small labels: states of an optimiser and variances are sound as well.
inline std::vector<runtime::Buffer> drawn_arguments(const ir::Graph& graph, unsigned seed) {
  std::mt19937 random(seed);
  std::vector<runtime::Buffer> arguments;
  for (const ir::Value& parameter : graph.parameters()) {
    const Type& type = parameter.type();
    runtime::Buffer buffer = runtime::Buffer::allocate(type);
    for (std::int64_t i = 0; i < type.elements(); ++i) {
      const double value = is_float(type.dtype) ? std::uniform_real_distribution<>(0.05, 0.15)(random)
                                                : static_cast<double>(random() % 10);
      ir::store_element(buffer.data(), type.dtype, i, ir::cast(ir::Scalar::of(value), type.dtype));
    }
    arguments.push_back(std::move(buffer));
  }
  return arguments;
}

// The largest |got - want| over the largest |want| of a result.
inline double largest_difference(const runtime::Buffer& got, const runtime::Buffer& want) {
  double difference = 0, largest = 1e-30;
  for (std::int64_t i = 0; i < want.type().elements(); ++i) {
    const double a = ir::load_element(got.data(), want.type().dtype, i).as_double();
    const double b = ir::load_element(want.data(), want.type().dtype, i).as_double();
    if (a == b) continue;
    difference = std::max(difference, std::abs(a - b) <= 1e300 ? std::abs(a - b) : 1e300);
    largest = std::max(largest, std::abs(b));
  }
  return difference / largest;
}

}  // namespace fusejit::test
