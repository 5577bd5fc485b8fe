// Resize. Where a cell comes from is computed as ONNX writes it, in f32; what that comes to is said by the ops that we
// have: nearest cells by any rule, bilinear ones of two axes by PyTorch's two rules.
#include <algorithm>
#include <cmath>
#include <numeric>

#include "frontend/onnx/call.h"
#include "frontend/onnx/ops/window.h"
#include "ir/base/check.h"

namespace fusejit::onnx {
namespace {

using Tensors = std::vector<Tensor>;

struct Axis {
  std::int64_t from = 0, to = 0;  // extents
  float scale = 1;
  bool is_kept() const { return from == to && scale == 1; }
};

// Operands: x, roi, scales, sizes.
std::vector<Axis> axes_of(const Call& c) {
  const Tensor x = c.tensor(0);
  std::vector<Axis> axes;
  for (const std::int64_t extent : x.shape()) axes.push_back({extent, extent, 1});
  const std::vector<double> scales = c.numbers_at(2);
  const Dims sizes = c.integers_at(3);
  FJ_CHECK(scales.empty() != sizes.empty(), "either scales or sizes must be given");
  Dims named = c.integers("axes");
  if (!c.has("axes")) named.resize(axes.size()), std::iota(named.begin(), named.end(), 0);
  FJ_CHECK(std::max(scales.size(), sizes.size()) == named.size(), "{} scales or sizes are given for {} axes",
           std::max(scales.size(), sizes.size()), named.size());
  for (std::size_t i = 0; i < named.size(); ++i) {
    Axis& axis = axes[static_cast<std::size_t>(axis_of(named[i], x.rank()))];
    if (!sizes.empty()) {
      axis.to = sizes[i];
      axis.scale = static_cast<float>(axis.to) / static_cast<float>(axis.from);
    } else {
      axis.scale = static_cast<float>(scales[i]);
      const float to = std::floor(axis.scale * static_cast<float>(axis.from));
      axis.to = to >= 0 && to < 1e9f ? static_cast<std::int64_t>(to) : 0;
    }
    FJ_CHECK(axis.from > 0 && axis.to > 0 && axis.to <= (std::int64_t{1} << 20),
             "an axis of {} cannot become one of {}", axis.from, axis.to);
  }
  return axes;
}

// Where along the axis of x cell i lies.
float place(const std::string& mode, const Axis& axis, std::int64_t i) {
  const float at = static_cast<float>(i), from = static_cast<float>(axis.from), to = static_cast<float>(axis.to);
  if (mode == "asymmetric") return at / axis.scale;
  if (mode == "align_corners") return axis.to == 1 ? 0 : at * (from - 1) / (to - 1);
  if (mode == "pytorch_half_pixel" && axis.to == 1) return 0;
  const float half = (at + 0.5f) / axis.scale - 0.5f;
  if (mode != "half_pixel_symmetric") return half;
  const float adjusted = to / (axis.scale * from);
  return from / 2 * (1 - adjusted) + half;
}

Dims nearest(const std::string& mode, const std::string& rounding, const Axis& axis) {
  Dims places;
  for (std::int64_t i = 0; i < axis.to; ++i) {
    const float at = place(mode, axis, i);
    const float rounded = rounding == "floor"               ? std::floor(at)
                          : rounding == "ceil"              ? std::ceil(at)
                          : rounding == "round_prefer_ceil" ? std::floor(at + 0.5f)
                                                            : std::ceil(at - 0.5f);
    places.push_back(std::clamp<std::int64_t>(static_cast<std::int64_t>(rounded), 0, axis.from - 1));
  }
  return places;
}

bool are_upsample_nearests(const Axis& axis, const Dims& places) {
  for (std::int64_t i = 0; i < axis.to; ++i) {
    if (places[static_cast<std::size_t>(i)] != std::min(i * axis.from / axis.to, axis.from - 1)) return false;
  }
  return true;
}

Tensor resized_nearest(const Call& c, const std::vector<Axis>& axes) {
  const std::string mode = c.text("coordinate_transformation_mode", "half_pixel"),
                    rounding = c.text("nearest_mode", "round_prefer_floor");
  std::vector<Dims> places;
  bool is_upsample = axes.size() == 4;
  for (std::size_t i = 0; i < axes.size(); ++i) {
    places.push_back(axes[i].is_kept() ? Dims() : nearest(mode, rounding, axes[i]));
    is_upsample = is_upsample && (axes[i].is_kept() || (i >= 2 && are_upsample_nearests(axes[i], places[i])));
  }
  Tensor x = c.tensor(0);
  if (is_upsample) return upsample_nearest2d(x, {axes[2].to, axes[3].to});
  for (std::size_t i = 0; i < axes.size(); ++i) {
    if (!axes[i].is_kept()) x = taken(x, static_cast<int>(i), places[i]);
  }
  return x;
}

Tensor resized_linear(const Call& c, std::vector<Axis> axes) {
  const std::string mode = c.text("coordinate_transformation_mode", "half_pixel");
  const bool aligns = mode == "align_corners";
  const Tensor x = c.tensor(0), image = as_image(x);
  if (axes.size() == 3) axes.insert(axes.begin() + 2, Axis{1, 1, 1});
  FJ_CHECK(axes[0].is_kept() && axes[1].is_kept(), "linear mode over the first two axes is not understood (x: {})",
           x.type().str());
  for (const Axis& axis : axes) {
    if (axis.is_kept()) continue;
    const bool is_ratio = std::abs(axis.scale * static_cast<float>(axis.from) - static_cast<float>(axis.to)) < 1e-3f;
    const bool is_ours = aligns || (mode != "asymmetric" && is_ratio);
    const bool is_corner = mode == "pytorch_half_pixel" && axis.to == 1 && axis.from > 1;
    if (!is_ours || is_corner) {
      throw UnsupportedError(fmt::format("linear mode with {} from {} cells to {} by the scale {} is not understood",
                                         mode, axis.from, axis.to, axis.scale));
    }
  }
  return as_before(upsample_bilinear2d(image, {axes[2].to, axes[3].to}, aligns), x);
}

Tensors resized(const Call& c) {
  const std::vector<Axis> axes = axes_of(c);
  return {c.text("mode", "nearest") == "nearest" ? resized_nearest(c, axes) : resized_linear(c, axes)};
}

}  // namespace

std::vector<Row> resize_rows() {
  const std::vector<AttributeRule> since_13{
      {"coordinate_transformation_mode", Kind::text, "half_pixel|pytorch_half_pixel|align_corners|asymmetric"},
      {"cubic_coeff_a", Kind::number},  // of a mode that is not understood
      {"exclude_outside", Kind::integer, "0"},
      {"extrapolation_value", Kind::number},  // likewise
      {"mode", Kind::text, "nearest|linear"},
      {"nearest_mode", Kind::text, "round_prefer_floor|round_prefer_ceil|floor|ceil"}};
  std::vector<AttributeRule> since_18 = since_13;
  since_18.push_back({"antialias", Kind::integer, "0"});
  since_18.push_back({"axes", Kind::integers});
  since_18.push_back({"keep_aspect_ratio_policy", Kind::text, "stretch"});
  std::vector<AttributeRule> since_19 = since_18;
  since_19[0].only = "half_pixel|half_pixel_symmetric|pytorch_half_pixel|align_corners|asymmetric";
  const auto row = [](int since, int until, const std::vector<AttributeRule>& attributes) {
    return Row{.op = "Resize",
               .since = since,
               .until = until,
               .most = 4,
               .attributes = attributes,
               .numbers = {1, 2, 3},
               .mean = resized};
  };
  return {row(13, 17, since_13), row(18, 18, since_18), row(19, INT_MAX, since_19)};
}

}  // namespace fusejit::onnx
