#include "frontend/models/initial_weights.h"

#include <cmath>

#include "frontend/nn/shapes_only.h"
#include "frontend/ops/random.h"

namespace fusejit::models {
namespace {

double deviation(const Shape& kernel, Fan fan) {
  const std::int64_t taps = kernel[2] * kernel[3];
  return std::sqrt(2 / static_cast<double>(taps * (fan == Fan::in ? kernel[1] : kernel[0])));
}

}  // namespace

void draw_initial_weights(const nn::Module& net, const InitialWeights& weights) {
  if (nn::ShapesOnly::is_on()) return;
  for (const auto& [name, parameter] : net.named_parameters()) {
    const Shape shape = parameter.value().shape();
    const auto draw = [&, &parameter = parameter](double wide) {
      parameter.set(from_host(normal_values(shape.elements(), wide), shape));
    };
    if (shape.rank() == 4) draw(deviation(shape, weights.fan));
    if (shape.rank() == 2 && weights.matrices > 0) draw(weights.matrices);
    if (shape.rank() == 1 && weights.zero_biases && name.ends_with("bias")) parameter.set(zeros(shape).eval());
  }
}

}  // namespace fusejit::models
