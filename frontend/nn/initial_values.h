// Values that layers begin with; without any where only shapes are asked for.
#pragma once

#include <cstdint>
#include <vector>

#include "fusejit/module.h"

namespace fusejit::nn {

// PyTorch's kaiming_uniform with a = sqrt(5): the bound comes out as 1/sqrt(fan_in).
Tensor uniform_within(std::int64_t fan_in, const Shape& shape);
Tensor filled(const Shape& shape, float value);
// [out,in/groups,kernel...], transposed [in,out/groups,kernel...], for a convolution of `layer`, whose numbers are
// checked.
Tensor conv_weight(const char* layer, std::int64_t in, std::int64_t out, const Dims& kernel, std::int64_t groups,
                   bool transposed = false);
// What a result is the sum of, by PyTorch's rule for a weight [out,in,...], a transposed one too: all extents but the
// first.
std::int64_t fan_in(const Shape& weight);

// The parameter's value, or an empty tensor where a layer has none.
inline Tensor or_none(const std::vector<Parameter>& parameters, std::size_t i) {
  return i < parameters.size() ? parameters[i].value() : Tensor();
}

}  // namespace fusejit::nn
