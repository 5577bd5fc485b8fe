#include "frontend/nn/shapes_only.h"

#include <utility>

#include "frontend/context.h"
#include "frontend/state.h"

namespace fusejit::nn {
namespace {

thread_local bool is_on = false;

}  // namespace

ShapesOnly::ShapesOnly() : before_(std::exchange(nn::is_on, true)) {}
ShapesOnly::~ShapesOnly() { nn::is_on = before_; }
bool ShapesOnly::is_on() { return nn::is_on; }

Tensor without_value(const Type& type) { return tensor_of(ir::parameter(type), false, 0, default_device()); }

}  // namespace fusejit::nn
