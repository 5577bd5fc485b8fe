#include "fusejit/nn/shape.h"

#include <cmath>

#include "frontend/record.h"
#include "frontend/state.h"
#include "ir/base/check.h"

namespace fusejit::nn {
namespace {

void check_probability(const char* layer, double p) {
  FJ_CHECK(p >= 0 && p <= 1, "{}: p is {}, it must lie between 0 and 1", layer, p);
}

}  // namespace

Upsample::Upsample(UpsampleOptions options) : options_(std::move(options)) {
  const auto& [size, factor, mode, align_corners] = options_;
  FJ_CHECK(size.has_value() != factor.has_value(), "Upsample: either size or scale_factor must be given{}",
           size ? ", not both" : "");
  FJ_CHECK(mode == "nearest" || mode == "bilinear", "Upsample: mode '{}' is not known (nearest, bilinear)", mode);
  FJ_CHECK(!align_corners || mode == "bilinear", "Upsample: align_corners is for mode bilinear only");
  FJ_CHECK(!factor || (std::isfinite(factor->vertical) && factor->vertical > 0 && std::isfinite(factor->horizontal) &&
                       factor->horizontal > 0),
           "Upsample: scale_factor [{},{}] must be finite and above 0", factor ? factor->vertical : 0,
           factor ? factor->horizontal : 0);
}

Tensor Upsample::forward(const Tensor& x) const {
  FJ_CHECK(x.defined() && x.rank() == 4, "Upsample: x must be [N,C,H,W] (x: {})", text(x));
  const auto scaled = [&](int axis, double factor) {
    const double extent = static_cast<double>(x.size(axis)) * factor;
    FJ_CHECK(extent < 0x1p40, "Upsample: {} times an extent of {} is beyond 2^40 cells (x: {})", factor, x.size(axis),
             x.type().str());
    FJ_CHECK(options_.align_corners || extent == std::floor(extent),
             "Upsample: {} times an extent of {} is no whole number, give the size itself (x: {})", factor,
             x.size(axis), x.type().str());
    return static_cast<std::int64_t>(extent);
  };
  const auto& factor = options_.scale_factor;
  const Pair size = factor ? Pair(scaled(2, factor->vertical), scaled(3, factor->horizontal)) : *options_.size;
  return options_.mode == "nearest" ? upsample_nearest2d(x, size)
                                    : upsample_bilinear2d(x, size, options_.align_corners);
}

Dropout::Dropout(double p) : p_(p) { check_probability("Dropout", p); }
Tensor Dropout::forward(const Tensor& x) const { return is_training() && p_ > 0 ? dropout(x, p_) : x; }

Dropout2d::Dropout2d(double p) : p_(p) { check_probability("Dropout2d", p); }
Tensor Dropout2d::forward(const Tensor& x) const {
  FJ_CHECK(x.defined() && x.rank() == 4 && is_float(x.dtype()), "Dropout2d: x must be a float [N,C,H,W] (x: {})",
           text(x));
  if (!is_training() || p_ == 0) return x;
  const Tensor channels = ones({x.size(0), x.size(1), 1, 1}, x.dtype());
  channels.state()->device = x.state()->device;
  return x * dropout(channels, p_);
}

}  // namespace fusejit::nn
