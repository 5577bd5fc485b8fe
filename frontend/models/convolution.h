#pragma once

#include "fusejit/nn.h"

namespace fusejit::models {

// A convolution with a square kernel that keeps the size of the image (or divides it by the stride), without bias, as
// before a normalisation.
inline nn::Conv2d conv(std::int64_t in, std::int64_t out, int kernel, int stride = 1) {
  return nn::Conv2d(in, out, kernel, {.stride = stride, .padding = kernel / 2, .bias = false});
}

}  // namespace fusejit::models
