// Sliding windows: what convolutions and pools share. Attributes are those of ops.md §10.
#pragma once

#include <algorithm>
#include <cstdint>

#include "ir/kernel/index.h"
#include "ir/op.h"

namespace fusejit::ir {

// Floor and ceiling of a quotient, of numbers and of index expressions alike; by > 0.
inline std::int64_t floor_divide(std::int64_t a, std::int64_t by) { return a / by - (a % by < 0); }
inline Index floor_divide(const Index& a, std::int64_t by) { return by == 1 ? a : a / by; }
template <class I>
I ceil_divide(const I& a, std::int64_t by) {
  return by == 1 ? a : floor_divide(a + I(by - 1), by);
}

// One image axis of a window: result o reads `in` at o * stride - low_padding + tap * dilation. What follows from that
// is asked with numbers by the interpreter and with index expressions by lowering: I is std::int64_t or Index.
struct WindowAxis {
  std::int64_t in = 1, out = 1, kernel = 1, stride = 1, low_padding = 0, dilation = 1, high_padding = 0;

  std::int64_t input(std::int64_t o, std::int64_t tap) const { return input_at<std::int64_t>(o, tap); }
  Index input(const Index& o, const Index& tap) const { return input_at<Index>(o, tap); }
  // No tap of any result falls outside.
  bool inside() const { return low_padding <= 0 && (out - 1) * stride + (kernel - 1) * dilation - low_padding < in; }
  // Windows stand side by side without overlap, gap or padding.
  bool tiles() const { return stride == kernel && low_padding == 0 && dilation == 1; }
  // The most windows that a cell is between the first and last tap of.
  std::int64_t most_windows() const { return (kernel - 1) * dilation / stride + 1; }

  // Taps of result o that see the input, results whose tap sees it, and results that have a cell between their first
  // and last tap: [first, end), which may reach beyond what there is.
  template <class I>
  I first_tap(const I& o) const {
    return ceil_divide(I(low_padding) - o * stride, dilation);
  }
  template <class I>
  I end_tap(const I& o) const {
    return floor_divide(I(in - 1 + low_padding) - o * stride, dilation) + I(1);
  }
  template <class I>
  I first_result_of_tap(const I& tap) const {
    return ceil_divide(I(low_padding) - tap * dilation, stride);
  }
  template <class I>
  I end_result_of_tap(const I& tap) const {
    return floor_divide(I(in - 1 + low_padding) - tap * dilation, stride) + I(1);
  }
  template <class I>
  I first_window(const I& cell) const {
    return ceil_divide(cell + I(low_padding - (kernel - 1) * dilation), stride);
  }
  template <class I>
  I end_window(const I& cell) const {
    return floor_divide(cell + I(low_padding), stride) + I(1);
  }

  struct Taps {
    std::int64_t first, last;
    std::int64_t count() const { return last - first; }
  };
  // The same of a result, cut to the taps that there are: [first, last).
  Taps taps(std::int64_t o) const {
    const std::int64_t first = std::max<std::int64_t>(0, first_tap(o)), end = std::min(kernel, end_tap(o));
    return {first, std::max(first, end)};
  }

 private:
  template <class I>
  I input_at(const I& o, const I& tap) const {
    return o * stride + tap * dilation - I(low_padding);
  }
};

// Both axes; `out` is computed: ⌊(in + low_padding + high_padding - dilation (kernel - 1) - 1) / stride⌋ + 1, not
// positive where the window does not fit.
struct Window {
  WindowAxis h, w;
};

// From attributes that are known to be sound. `dilation` is 1 where the row has no such attribute.
WindowAxis window_axis(const Attrs& attrs, std::size_t axis, std::int64_t in, std::int64_t kernel);
Window window(const Attrs& attrs, std::int64_t input_h, std::int64_t input_w, std::int64_t kernel_h,
              std::int64_t kernel_w);
// The same while inferring: checks stride, padding, dilation and that at least one output position exists.
Window checked_window(const InferContext& context, std::int64_t input_h, std::int64_t input_w, std::int64_t kernel_h,
                      std::int64_t kernel_w);

}  // namespace fusejit::ir
