// The running statistics of normalisation layers.
#pragma once

#include <vector>

#include "fusejit/module.h"

namespace fusejit::nn {

// running*(1 - momentum) + batch*momentum for the mean and the variance (by n - 1) of x: [N,C,...] per channel.
// per_image: the means over the images of their own statistics, in place of the batch's.
void update_running(const std::vector<Parameter>& running, const Tensor& x, double momentum, bool per_image = false);

void check_channels(const char* layer, const Tensor& x, std::int64_t channels);

}  // namespace fusejit::nn
