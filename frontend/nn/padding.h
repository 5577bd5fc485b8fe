// Padding that is not zero: the image's own cells around it, as views.
#pragma once

#include <array>
#include <string>

#include "fusejit/ops.h"

namespace fusejit::nn {

// UserError unless it is zeros, reflect, replicate or circular.
void check_padding_mode(const char* layer, const std::string& mode);

// x: [N,C,H,W] with `cells` around it. UserError where the image is too small for them.
Tensor padded(const char* layer, const Tensor& x, const std::array<std::int64_t, 4>& cells, const std::string& mode);

}  // namespace fusejit::nn
