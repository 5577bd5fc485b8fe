// Sliding windows: what convolutions and pools share. Attributes are those of ops.md §10.
#pragma once

#include <cstdint>

#include "ir/op.h"

namespace fusejit::ir {

// One image axis of a window: output position o and tap r read input position o * stride - low + r * dilation.
struct WindowAxis {
  std::int64_t input = 1, output = 1, kernel = 1, stride = 1, low = 0, high = 0, dilation = 1;

  std::int64_t input_at(std::int64_t o, std::int64_t r) const { return o * stride - low + r * dilation; }
  // The taps of position o that see the input: [first, last).
  struct Taps {
    std::int64_t first, last;
    std::int64_t count() const { return last - first; }
  };
  Taps taps(std::int64_t o) const {
    const std::int64_t start = o * stride - low;
    const std::int64_t first = start >= 0 ? 0 : (-start + dilation - 1) / dilation;
    const std::int64_t end = start >= input ? 0 : (input - start + dilation - 1) / dilation;
    const std::int64_t last = end < kernel ? end : kernel;
    return {first, last > first ? last : first};
  }
};

// Both axes; `output` is computed: ⌊(input + low + high - dilation (kernel - 1) - 1) / stride⌋ + 1, not positive where
// the window does not fit.
struct Window {
  WindowAxis h, w;
};

// From attributes that are known to be sound. `dilation` is 1 where the row has no such attribute.
Window window(const Attrs& attrs, std::int64_t input_h, std::int64_t input_w, std::int64_t kernel_h,
              std::int64_t kernel_w);
// The same while inferring: checks stride, padding, dilation and that at least one output position exists.
Window checked_window(const InferContext& context, std::int64_t input_h, std::int64_t input_w, std::int64_t kernel_h,
                      std::int64_t kernel_w);

}  // namespace fusejit::ir
