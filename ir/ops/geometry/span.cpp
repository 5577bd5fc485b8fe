#include "ir/ops/geometry/span.h"

#include "ir/node.h"

namespace fusejit::ir {

std::int64_t PartsAxis::most() const {
  if (is_even()) return in / out;
  std::int64_t most = 1;
  for (std::int64_t o = 0; o < out; ++o) most = std::max(most, end(o) - first(o));
  return most;
}

LinearAxis LinearAxis::of(std::int64_t in, std::int64_t out, bool align_corners) {
  LinearAxis a{in, out};
  if (!align_corners) {
    a.step = 2 * in, a.offset = in - out, a.unit = 2 * out;  // the middle of a result: (o + 1/2) * in/out - 1/2
  } else if (out > 1) {
    a.step = in - 1, a.unit = out - 1;
  }
  const std::int64_t common = std::gcd(std::gcd(a.step, a.offset), a.unit);
  a.step /= common, a.offset /= common, a.unit /= common;
  return a;
}

ImageSpan span_of(const Node& node, int axis) { return op_def(node.op).span(node, axis); }

}  // namespace fusejit::ir
