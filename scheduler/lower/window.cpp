#include "scheduler/lower/window.h"

namespace fusejit::scheduler {

using ir::Index;

namespace {

Index ceil_divide(const Index& a, std::int64_t by) { return by == 1 ? a : (a + Index(by - 1)) / by; }

}  // namespace

Window convolution_window(const ir::Node& node, std::size_t axis, std::int64_t in, std::int64_t out,
                          std::int64_t kernel) {
  return {in,
          out,
          kernel,
          node.attrs.ints("stride")[axis],
          node.attrs.ints("padding")[axis],
          node.attrs.ints("dilation")[axis]};
}

TapRange tap_range(const Window& w, const Index& o) {
  if (w.inside()) return {{Index(0)}, {Index(w.kernel)}, true};
  const Index first = ceil_divide(Index(w.low_padding) - o * w.stride, w.dilation);
  const Index last = (Index(w.in - 1 + w.low_padding) - o * w.stride) / w.dilation;
  return {{Index(0), first}, {Index(w.kernel), last + Index(1)}, false};
}

TapRange covering_outputs(const Window& w, const Index& tap) {
  if (w.inside()) return {{Index(0)}, {Index(w.out)}, true};
  const Index first = ceil_divide(Index(w.low_padding) - tap * w.dilation, w.stride);
  const Index last = (Index(w.in - 1 + w.low_padding) - tap * w.dilation) / w.stride;
  return {{Index(0), first}, {Index(w.out), last + Index(1)}, false};
}

TapRange covering_windows(const Window& w, const Index& pixel) {
  const Index first = ceil_divide(pixel + Index(w.low_padding - (w.kernel - 1) * w.dilation), w.stride);
  const Index last = (pixel + Index(w.low_padding)) / w.stride;
  return {{Index(0), first}, {Index(w.out), last + Index(1)}, false};
}

}  // namespace fusejit::scheduler
