#include "frontend/nn/padding.h"

#include "frontend/record.h"
#include "ir/base/check.h"

namespace fusejit::nn {
namespace {

// `count` cells before the axis, or behind it.
Tensor border(const Tensor& x, int axis, std::int64_t count, bool before, const std::string& mode) {
  const std::int64_t extent = x.size(axis);
  if (mode == "circular") return before ? slice(x, axis, extent - count, extent) : slice(x, axis, 0, count);
  if (mode == "reflect") {
    return flip(before ? slice(x, axis, 1, 1 + count) : slice(x, axis, extent - 1 - count, extent - 1), {axis});
  }
  Dims shape(x.shape().begin(), x.shape().end());
  shape[static_cast<std::size_t>(axis)] = count;
  return expand(before ? slice(x, axis, 0, 1) : slice(x, axis, extent - 1, extent), shape);
}

}  // namespace

void check_padding_mode(const char* layer, const std::string& mode) {
  FJ_CHECK(mode == "zeros" || mode == "reflect" || mode == "replicate" || mode == "circular",
           "{}: padding_mode '{}' is not known (zeros, reflect, replicate, circular)", layer, mode);
}

Tensor padded(const char* layer, const Tensor& x, const std::array<std::int64_t, 4>& cells, const std::string& mode) {
  FJ_CHECK(x.defined() && x.rank() == 4, "{}: x must be [N,C,H,W] (x: {})", layer, text(x));
  Tensor y = x;
  for (const int axis : {2, 3}) {
    const auto side = static_cast<std::size_t>(axis - 2);
    const std::int64_t before = cells[side], behind = cells[side + 2], extent = x.size(axis);
    const std::int64_t most = mode == "reflect" ? extent - 1 : mode == "circular" || extent == 0 ? extent : INT64_MAX;
    FJ_CHECK(before >= 0 && behind >= 0 && before <= most && behind <= most,
             "{}: {} padding of {} and {} cells does not fit an extent of {} (x: {})", layer, mode, before, behind,
             extent, x.type().str());
    std::vector<Tensor> parts;
    if (before > 0) parts.push_back(border(y, axis, before, true, mode));
    parts.push_back(y);
    if (behind > 0) parts.push_back(border(y, axis, behind, false, mode));
    if (parts.size() > 1) y = concat(parts, axis);
  }
  return y;
}

}  // namespace fusejit::nn
