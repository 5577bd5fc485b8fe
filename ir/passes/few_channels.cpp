// Images of few channels in front of a library's convolution: photographs have three, and tensor cores load 16 bytes of
// channels at once. Such a convolution ran at 53 of an H200's 800 TFLOP/s in bf16. The image is copied to NHWC in any
// case, and that copy gives it more channels:
// - a stride of two becomes channels, four for one (space to depth): with P = pad(x) and V = pad(w) of even sizes,
//     conv2d(x, w) {stride=[2,2]} = conv2d(squares of P, squares of V)
//   where channel (c, i, j) of the squares of P at [h, w] is P[c, 2h+i, 2w+j], and of V likewise;
// - else there are channels of zeros: conv2d(x, w) = conv2d(pad(x), pad(w)).
// Gradients by w are those of the wider image, brought back.
#include <array>
#include <map>
#include <optional>
#include <tuple>

#include "ir/ops/geometry/window.h"
#include "ir/passes/passes.h"
#include "ir/rewrite.h"

namespace fusejit::ir {
namespace {

using Dims = std::array<std::int64_t, 4>;
using Sizes = std::array<std::int64_t, 2>;  // rows, columns

constexpr std::int64_t kBytesAtOnce = 16;
constexpr std::int64_t kMostTimes = 3;       // as many channels of zeros: the library multiplies by them
constexpr std::int64_t kMostOfSquares = 16;  // channels

template <class D>
AttrInit list(const char* name, const D& values) {
  return {name, std::span<const std::int64_t>(values)};
}

Value padded(const Value& x, const Dims& low, const Dims& high, std::uint32_t region) {
  for (std::size_t d = 0; d < 4; ++d)
    if (low[d] + high[d] > 0) return build(Op::pad, {x}, {list("low", low), list("high", high)}, region);
  return x;
}
Value cut(const Value& x, const Dims& to, std::uint32_t region) {
  const Dims starts{}, steps{1, 1, 1, 1};
  return build(Op::slice, {x}, {list("starts", starts), list("stops", to), list("steps", steps)}, region);
}
template <std::size_t n>
Value reshaped(const Value& x, const std::array<std::int64_t, n>& shape, std::uint32_t region) {
  return build(Op::reshape, {x}, {list("shape", shape)}, region);
}
Value permuted(const Value& x, const std::array<std::int64_t, 6>& dims, std::uint32_t region) {
  return build(Op::permute, {x}, {list("dims", dims)}, region);
}

std::int64_t up_to(std::int64_t n, std::int64_t unit) { return (n + unit - 1) / unit * unit; }

// What becomes of a convolution of x: [N,C,H,W] by w: [K,C,R,S] with its attributes.
class Wider {
 public:
  // Null: it stays.
  static std::optional<Wider> of(const Node& node, const Type& x, std::int64_t r, std::int64_t s) {
    const std::int64_t c = x.shape[1], at_once = kBytesAtOnce / bytes(x.dtype, 1);
    if (c >= at_once || node.attrs.integer("groups") != 1) return std::nullopt;
    Wider wider;
    wider.region_ = node.region, wider.c_ = c, wider.kernel_ = {r, s};
    if (wider.squares(node, x)) {
      wider.wide_ = up_to(4 * c, at_once);
      return wider;
    }
    if (kMostTimes * c < at_once) return std::nullopt;
    wider.wide_ = at_once;
    return wider;
  }

  // Of convolutions that may share the image.
  std::tuple<bool, Sizes, Sizes, Sizes> key() const { return {in_squares_, size_, even_, padding_}; }

  Value image(const Value& x) const {
    if (!in_squares_) return padded(x, {}, {0, wide_ - c_, 0, 0}, region_);
    const Shape& shape = x.type().shape;
    const Dims low{0, 0, padding_[0], padding_[1]},
        high{0, 0, size_[0] - shape[2] - padding_[0], size_[1] - shape[3] - padding_[1]};
    return of_squares(padded(x, low, high, region_), size_);
  }
  Value weight(const Value& w) const {
    if (!in_squares_) return padded(w, {}, {0, wide_ - c_, 0, 0}, region_);
    return of_squares(padded(w, {}, {0, 0, even_[0] - kernel_[0], even_[1] - kernel_[1]}, region_), even_);
  }
  std::vector<AttrInit> attrs(const Node& node) const {
    if (in_squares_) return {};  // no padding, no stride
    return {{"stride", node.attrs.ints("stride")},
            {"padding", node.attrs.ints("padding")},
            {"dilation", node.attrs.ints("dilation")}};
  }
  Sizes kernel() const { return in_squares_ ? Sizes{even_[0] / 2, even_[1] / 2} : kernel_; }
  // The gradient by w, of its own type, from that by weight(w).
  Value narrow(const Value& gradient, const Type& type) const {
    const std::int64_t k = gradient.type().shape[0];
    const auto own_part = [&](const Value& whole) {
      const Dims starts{}, stops{k, c_, kernel_[0], kernel_[1]}, steps{1, 1, 1, 1};
      return build_as(type, Op::slice, {whole}, {list("starts", starts), list("stops", stops), list("steps", steps)},
                      region_);
    };
    if (!in_squares_) return own_part(gradient);
    const std::int64_t r = even_[0] / 2, s = even_[1] / 2;
    const Value own = cut(gradient, {k, 4 * c_, r, s}, region_);
    const Value apart = reshaped<6>(own, {k, c_, 2, 2, r, s}, region_);
    const Value whole = reshaped<4>(permuted(apart, {0, 1, 4, 2, 5, 3}, region_), {k, c_, 2 * r, 2 * s}, region_);
    return own_part(whole);
  }

 private:
  // True if rows and columns of two are read together: a stride of two over all of the image.
  bool squares(const Node& node, const Type& x) {
    if (4 * c_ > kMostOfSquares) return false;
    for (std::size_t a = 0; a < 2; ++a) {
      const WindowAxis window = window_axis(node.attrs, a, x.shape[2 + static_cast<int>(a)], kernel_[a]);
      if (window.stride != 2 || window.dilation != 1 || window.kernel < 2) return false;
      even_[a] = up_to(window.kernel, 2);
      size_[a] = 2 * (window.out - 1) + even_[a];
      padding_[a] = window.low_padding;
      if (size_[a] < window.in + padding_[a]) return false;  // some of it is not read
    }
    return in_squares_ = true;
  }

  // [A,C,2h,2w] as [A,wide,h,w].
  Value of_squares(const Value& x, const Sizes& size) const {
    const std::int64_t a = x.type().shape[0], h = size[0] / 2, w = size[1] / 2;
    const Value apart = permuted(reshaped<6>(x, {a, c_, h, 2, w, 2}, region_), {0, 1, 3, 5, 2, 4}, region_);
    return padded(reshaped<4>(apart, {a, 4 * c_, h, w}, region_), {}, {0, wide_ - 4 * c_, 0, 0}, region_);
  }

  std::uint32_t region_ = 0;
  std::int64_t c_ = 1, wide_ = 1;
  Sizes kernel_{};
  bool in_squares_ = false;
  Sizes even_{}, size_{}, padding_{};  // rows and columns of the padded weight and image, and in front of the image
};

}  // namespace

Graph widen_few_channels(const Graph& graph, const Target& target) {
  if (target.cudnn == CudnnMode::off) return graph;
  // One image serves the convolution and its gradient.
  std::map<std::pair<const Node*, decltype(std::declval<Wider>().key())>, Value> images;
  return rewrite(graph, [&](const Node& node, const std::vector<Operand>& operands) -> Value {
    const bool forward = node.op == Op::conv2d;
    if ((!forward && node.op != Op::conv2d_weight_grad) || !suits_library(node, target)) return {};
    const Type& x = operands[0].value.type();
    const Shape& w = forward ? operands[1].value.type().shape : node.type.shape;
    if (x.dtype == DType::f64) return {};
    const std::optional<Wider> wider = Wider::of(node, x, w[2], w[3]);
    if (!wider) return {};
    Value& image = images[{operands[0].value.get(), wider->key()}];
    if (!image) image = wider->image(operands[0].value);
    std::vector<AttrInit> attrs = wider->attrs(node);
    if (forward)
      return build_as(node.type, Op::conv2d, {image, wider->weight(operands[1].value)}, std::move(attrs), node.region);
    const Sizes kernel = wider->kernel();
    attrs.push_back(list("kernel_size", kernel));
    return wider->narrow(build(Op::conv2d_weight_grad, {image, operands[1].value}, std::move(attrs), node.region),
                         node.type);
  });
}

}  // namespace fusejit::ir
