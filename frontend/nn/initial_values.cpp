#include "frontend/nn/initial_values.h"

#include <cmath>

#include "frontend/nn/shapes_only.h"
#include "frontend/ops/random.h"
#include "ir/base/check.h"

namespace fusejit::nn {

Tensor uniform_within(std::int64_t fan_in, const Shape& shape) {
  if (ShapesOnly::is_on()) return without_value({f32, shape, Layout::standard});
  return from_host(uniform_values(shape.elements(), 1 / std::sqrt(static_cast<double>(fan_in))), shape);
}

Tensor filled(const Shape& shape, float value) {
  return from_host(std::vector<float>(static_cast<std::size_t>(shape.elements()), value), shape);
}

Tensor conv_weight(const char* layer, std::int64_t in, std::int64_t out, const Dims& kernel, std::int64_t groups,
                   bool transposed) {
  FJ_CHECK(in >= 1 && out >= 1 && groups >= 1 && in % groups == 0 && out % groups == 0,
           "{}: {} input and {} output channels do not divide into {} groups", layer, in, out, groups);
  Dims shape{transposed ? in : out, (transposed ? out : in) / groups};
  for (const std::int64_t extent : kernel) {
    FJ_CHECK(extent >= 1, "{}: the kernel [{}] must have at least one cell", layer, fmt::join(kernel, ","));
    shape.push_back(extent);
  }
  return uniform_within(fan_in(Shape(shape)), Shape(shape));
}

std::int64_t fan_in(const Shape& weight) { return weight.elements() / weight[0]; }

}  // namespace fusejit::nn
