// Sliding windows along one spatial dim as bounds of loops: which taps of a window lie inside, and which windows cover
// a pixel.
#pragma once

#include <vector>

#include "ir/graph.h"
#include "ir/kernel/index.h"
#include "ir/ops/geometry/span.h"

namespace fusejit::scheduler {

using Window = ir::WindowAxis;

// Of the rows (axis 0) or columns (1) of a convolution, or of one of its gradients.
Window convolution_window(const ir::Node& node, std::size_t axis, std::int64_t in, std::int64_t out,
                          std::int64_t kernel);
// Of the rows (axis 0) or columns (1) of a max_pool2d_grad's image.
inline Window pooled_window(const ir::Node& grad, int axis) { return ir::pool_window(grad, axis); }

// Bounds for a loop: low is max of its entries, high min.
struct TapRange {
  std::vector<ir::Index> low, high;
  bool constant = false;
};
// Taps of window `o` that read inside.
TapRange tap_range(const Window& window, const ir::Index& o);
// Windows that have `pixel` between their first and last tap.
TapRange covering_windows(const Window& window, const ir::Index& pixel);

}  // namespace fusejit::scheduler
