// What a value was computed from.
#pragma once

#include <vector>

#include "fusejit/tensor.h"

namespace fusejit {

// For each value whether `result` was computed from it.
std::vector<bool> leads_to(const std::vector<Tensor>& values, const Tensor& result);

}  // namespace fusejit
