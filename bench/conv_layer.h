// A convolution as graphs: its forward pass and both gradients, channels innermost.
#pragma once

#include <fmt/format.h>

#include <string>

namespace fusejit::bench {

struct Layer {
  int batch, channels, size, outputs, kernel, stride, padding;
  int out() const { return (size + 2 * padding - kernel) / stride + 1; }
  std::string label() const {
    return fmt::format("{}x{}{} {}->{} @{} n{}", kernel, kernel, stride > 1 ? fmt::format("s{}", stride) : "", channels,
                       outputs, size, batch);
  }
  // Products of one spatial dim that do not fall on padding.
  double taps() const {
    double count = 0;
    for (int o = 0; o < out(); ++o) {
      for (int r = 0; r < kernel; ++r) {
        const int h = o * stride + r - padding;
        count += h >= 0 && h < size;
      }
    }
    return count;
  }
  double flop() const { return 2.0 * batch * taps() * taps() * channels * outputs; }

  // The first parameter is an activation or its gradient, the second the weights or, for dw, the gradient of the
  // result.
  std::string forward(const std::string& dtype) const {
    return fmt::format("graph @f(%x: {0}{1}, %w: {0}{2}) {{ %0 = conv2d(%x, %w) {{{3}}} : {0}{4} return %0 }}", dtype,
                       x(), w(), attributes(), y());
  }
  std::string input_gradient(const std::string& dtype) const {
    return fmt::format(
        "graph @dx(%g: {0}{1}, %w: {0}{2}) {{ %0 = conv2d_input_grad(%g, %w) {{input_size=[{3},{3}], {4}}} : {0}{5} "
        "return %0 }}",
        dtype, y(), w(), size, attributes(), x());
  }
  std::string weight_gradient(const std::string& dtype) const {
    return fmt::format(
        "graph @dw(%x: {0}{1}, %g: {0}{2}) {{ %0 = conv2d_weight_grad(%x, %g) {{kernel_size=[{3},{3}], {4}}} : {0}{5} "
        "return %0 }}",
        dtype, x(), y(), kernel, attributes(), w());
  }

 private:
  std::string attributes() const {
    return fmt::format("stride=[{0},{0}], padding=[{1},{1},{1},{1}], dilation=[1,1], groups=1", stride, padding);
  }
  std::string x() const { return fmt::format("[{},{},{},{}]:nhwc", batch, channels, size, size); }
  std::string y() const { return fmt::format("[{},{},{},{}]:nhwc", batch, outputs, out(), out()); }
  std::string w() const { return fmt::format("[{},{},{},{}]", outputs, channels, kernel, kernel); }
};

}  // namespace fusejit::bench
