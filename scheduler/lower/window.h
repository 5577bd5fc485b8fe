// Sliding windows along one spatial dim: which taps of a window lie inside, and which windows cover a pixel.
#pragma once

#include <vector>

#include "ir/graph.h"
#include "ir/kernel/index.h"

namespace fusejit::scheduler {

struct Window {
  std::int64_t in = 1, out = 1, kernel = 1, stride = 1, low_padding = 0, dilation = 1;

  // Input position that tap `tap` of window `o` reads.
  ir::Index input(const ir::Index& o, const ir::Index& tap) const {
    return o * stride + tap * dilation - ir::Index(low_padding);
  }
  // No tap of any window falls outside.
  bool inside() const { return low_padding <= 0 && (out - 1) * stride + (kernel - 1) * dilation - low_padding < in; }
  // Windows stand side by side without overlap, gap or padding.
  bool tiles() const { return stride == kernel && low_padding == 0 && dilation == 1; }
};

// Of the rows (axis 0) or columns (1) of a convolution, or of one of its gradients.
Window convolution_window(const ir::Node& node, std::size_t axis, std::int64_t in, std::int64_t out,
                          std::int64_t kernel);
// Of the rows (axis 0) or columns (1) of a max_pool2d_grad's image.
Window pooled_window(const ir::Node& grad, int axis);

// Bounds for a loop: low is max of its entries, high min.
struct TapRange {
  std::vector<ir::Index> low, high;
  bool constant = false;
};
// Taps of window `o` that read inside.
TapRange tap_range(const Window& window, const ir::Index& o);
// Windows whose tap `tap` reads inside.
TapRange covering_outputs(const Window& window, const ir::Index& tap);
// Windows that have `pixel` between their first and last tap.
TapRange covering_windows(const Window& window, const ir::Index& pixel);

}  // namespace fusejit::scheduler
