#include "scheduler/lower/expression/window.h"

namespace fusejit::scheduler {

using ir::Index;

Window convolution_window(const ir::Node& node, std::size_t axis, std::int64_t in, std::int64_t out,
                          std::int64_t kernel) {
  Window window = ir::window_axis(node.attrs, axis, in, kernel);
  window.out = out;
  return window;
}

TapRange tap_range(const Window& w, const Index& o) {
  if (w.inside()) return {{Index(0)}, {Index(w.kernel)}, true};
  return {{Index(0), w.first_tap(o)}, {Index(w.kernel), w.end_tap(o)}, false};
}

TapRange covering_windows(const Window& w, const Index& pixel) {
  return {{Index(0), w.first_window(pixel)}, {Index(w.out), w.end_window(pixel)}, false};
}

}  // namespace fusejit::scheduler
