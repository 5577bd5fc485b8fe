#include "fusejit/nn/activation.h"

#include "frontend/nn/initial_values.h"
#include "frontend/record.h"
#include "ir/base/check.h"

namespace fusejit::nn {
namespace {

std::int64_t checked(std::int64_t num_parameters) {
  FJ_CHECK(num_parameters >= 1, "PReLU: {} parameters, there must be at least one", num_parameters);
  return num_parameters;
}

}  // namespace

PReLU::PReLU(std::int64_t num_parameters, double init)
    : weight_(parameter("weight", filled({checked(num_parameters)}, static_cast<float>(init)))) {}

Tensor PReLU::forward(const Tensor& given) const {
  const Tensor x = autocast(ir::AutocastRule::narrow, given);
  Tensor weight = autocast(ir::AutocastRule::narrow, weight_.value());
  const std::int64_t count = weight.shape()[0];
  FJ_CHECK(x.defined() && x.dtype() == weight.dtype() && (count == 1 || (x.rank() >= 2 && x.shape()[1] == count)),
           "PReLU: x must be {} of {} channels along axis 1 (x: {}, weight: {})", name(weight.dtype()),
           count == 1 ? "any number" : std::to_string(count), text(x), weight.type().str());
  Dims shape(static_cast<std::size_t>(count == 1 ? x.rank() : x.rank() - 1), 1);
  if (count > 1) shape[0] = count;  // meets axis 1
  weight = weight.reshape(shape);
  return where(x > 0, x, x * weight);
}

}  // namespace fusejit::nn
