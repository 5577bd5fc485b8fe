// Images of few channels in front of a library's convolution: photographs have three, and tensor cores load 16 bytes of
// channels at once. Such a convolution ran at 53 of an H200's 800 TFLOP/s in bf16. The image is copied to NHWC in any
// case, and that copy gives it more channels:
// - a stride of two becomes channels (space to depth), and four outputs of a row become one of four times the channels:
//   with P = pad(x) and V = the filters, padded, and moved by 0, 2, 4 and 6 columns,
//     conv2d(x, w) {stride=[2,2]} = conv2d(blocks of P, blocks of V), of four outputs each
//   where channel (c, j, i) of the blocks of P at [h, w] is P[c, 2h+i, 8w+j], and of V likewise. A library multiplies
//   32 or 64 channels of a tap at once and has 48 of 8 taps for 12 of 16; results and gradients lie in NHWC as they
//   would. Rows whose outputs are no multiple of four have blocks of two by two;
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
constexpr std::int64_t kMostTimes = 3;     // as many channels of zeros: the library multiplies by them
constexpr std::int64_t kMostInBlocks = 4;  // channels of what becomes blocks
constexpr std::int64_t kOutputsAtOnce = 4;
constexpr std::int64_t kChannelsAtOnce = 32;  // of a tap: 48 took 1.08 of the time of 64, 24 1.8 of that of 32

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
template <std::size_t n>
Value permuted(const Value& x, const std::array<std::int64_t, n>& dims, std::uint32_t region) {
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
    if (wider.in_blocks(node, x)) {
      wider.wide_ = up_to(wider.block(0) * wider.block(1) * c, wider.moves_outputs() ? kChannelsAtOnce : at_once);
      return wider;
    }
    if (kMostTimes * c < at_once) return std::nullopt;
    wider.wide_ = at_once;
    return wider;
  }

  bool moves_outputs() const { return outputs_[1] > 1; }
  // Of convolutions that may share the image.
  std::tuple<Sizes, Sizes, Sizes, Sizes> key() const { return {outputs_, size_, whole_, padding_}; }

  Value image(const Value& x) const {
    if (!in_blocks()) return padded(x, {}, {0, wide_ - c_, 0, 0}, region_);
    const Shape& shape = x.type().shape;
    const Dims low{0, 0, padding_[0], padding_[1]},
        high{0, 0, size_[0] - shape[2] - padding_[0], size_[1] - shape[3] - padding_[1]};
    return of_blocks(padded(x, low, high, region_), size_);
  }
  Value weight(const Value& w) const {
    if (!in_blocks()) return padded(w, {}, {0, wide_ - c_, 0, 0}, region_);
    std::vector<Operand> moved;
    for (std::int64_t column = 0; column < block(1); column += kStride) {
      const Dims low{0, 0, 0, column}, high{0, 0, whole_[0] - kernel_[0], whole_[1] - kernel_[1] - column};
      moved.push_back(padded(w, low, high, region_));
    }
    const std::int64_t outputs = 0;
    return of_blocks(moved.size() == 1 ? moved[0].value : build(Op::concat, moved, {{"dim", outputs}}, region_),
                     whole_);
  }
  std::vector<AttrInit> attrs(const Node& node) const {
    if (in_blocks()) return {};  // no padding, no stride
    return {{"stride", node.attrs.ints("stride")},
            {"padding", node.attrs.ints("padding")},
            {"dilation", node.attrs.ints("dilation")}};
  }
  Sizes kernel() const { return in_blocks() ? Sizes{whole_[0] / block(0), whole_[1] / block(1)} : kernel_; }
  // The result, of its own type: [N,4K,P,Q] is [N,K,P,4Q].
  Value result(const Value& y, const Type& type) const {
    if (!moves_outputs()) return y;
    const OriginScope scope(other_view());
    const std::int64_t n = outputs_[1];
    const Shape& shape = type.shape;
    const Value apart = reshaped<5>(y, {shape[0], n, shape[1], shape[2], shape[3] / n}, region_);
    const Value lined = permuted<5>(apart, {0, 2, 3, 4, 1}, region_);
    return build_as(type, Op::reshape, {lined}, {list("shape", Dims{shape[0], shape[1], shape[2], shape[3]})}, region_);
  }
  // The gradient by the result as the wider convolution has it.
  Value gradient(const Value& dy) const {
    if (!moves_outputs()) return dy;
    const OriginScope scope(other_view());
    const std::int64_t n = outputs_[1];
    const Shape& shape = dy.type().shape;
    const Value apart = reshaped<5>(dy, {shape[0], shape[1], shape[2], shape[3] / n, n}, region_);
    return reshaped<4>(permuted<5>(apart, {0, 4, 1, 2, 3}, region_), {shape[0], n * shape[1], shape[2], shape[3] / n},
                       region_);
  }
  // The gradient by w, of its own type, from that by weight(w).
  Value narrow(const Value& gradient, const Type& type) const {
    const std::int64_t k = type.shape[0];
    // Of the filters that were moved to this column.
    const auto own_part = [&](const Value& whole, std::int64_t column) {
      const std::int64_t of = column / kStride;
      const Dims starts{of * k, 0, 0, column}, stops{(of + 1) * k, c_, kernel_[0], kernel_[1] + column},
          steps{1, 1, 1, 1};
      return build_as(type, Op::slice, {whole}, {list("starts", starts), list("stops", stops), list("steps", steps)},
                      region_);
    };
    if (!in_blocks()) return own_part(gradient, 0);
    const std::int64_t a = gradient.type().shape[0], r = kernel()[0], s = kernel()[1];
    const Value own = cut(gradient, {a, block(0) * block(1) * c_, r, s}, region_);
    const Value apart = reshaped<6>(own, {a, c_, block(1), block(0), r, s}, region_);
    const Value whole =
        reshaped<4>(permuted<6>(apart, {0, 1, 4, 3, 5, 2}, region_), {a, c_, whole_[0], whole_[1]}, region_);
    Value sum = own_part(whole, 0);
    for (std::int64_t column = kStride; column < block(1); column += kStride)
      sum = build(Op::add, {sum, own_part(whole, column)}, Attrs{}, region_);
    return sum;
  }

 private:
  static constexpr std::int64_t kStride = 2;
  // Who reads a result as it is or as the wider convolution has it does nothing that the user wrote.
  static Origin other_view() {
    Origin origin = current_origin();
    origin.op = kNewLayout, origin.role = Role::forward, origin.node = 0;
    return origin;
  }
  bool in_blocks() const { return outputs_[0] > 0; }
  std::int64_t block(std::size_t axis) const { return kStride * outputs_[axis]; }

  // True if rows and columns of two are read together: a stride of two over all of the image.
  bool in_blocks(const Node& node, const Type& x) {
    if (c_ > kMostInBlocks) return false;
    Sizes outputs{1, 1};
    for (std::size_t a = 0; a < 2; ++a) {
      const WindowAxis window = window_axis(node.attrs, a, x.shape[2 + static_cast<int>(a)], kernel_[a]);
      if (window.stride != kStride || window.dilation != 1 || window.kernel < 2) return false;
      if (a == 1 && window.out % kOutputsAtOnce == 0) outputs[a] = kOutputsAtOnce;
      const std::int64_t size = kStride * outputs[a];
      whole_[a] = up_to(size - kStride + window.kernel, size);
      size_[a] = size * (window.out / outputs[a] - 1) + whole_[a];
      padding_[a] = window.low_padding;
      if (size_[a] < window.in + padding_[a]) return false;  // some of it is not read
    }
    outputs_ = outputs;
    return true;
  }

  // [A,C,h,w] as [A,wide,h/2,w/8].
  Value of_blocks(const Value& x, const Sizes& size) const {
    const std::int64_t a = x.type().shape[0], h = size[0] / block(0), w = size[1] / block(1),
                       channels = block(0) * block(1) * c_;
    const Value apart =
        permuted<6>(reshaped<6>(x, {a, c_, h, block(0), w, block(1)}, region_), {0, 1, 5, 3, 2, 4}, region_);
    return padded(reshaped<4>(apart, {a, channels, h, w}, region_), {}, {0, wide_ - channels, 0, 0}, region_);
  }

  std::uint32_t region_ = 0;
  std::int64_t c_ = 1, wide_ = 1;
  Sizes kernel_{};
  Sizes outputs_{};                     // that a block of an image begins, in a column and in a row; 0: no blocks
  Sizes whole_{}, size_{}, padding_{};  // rows and columns of the padded weight and image, and in front of the image
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
    if (forward) {
      const std::vector<Operand> both{image, wider->weight(operands[1].value)};
      if (!wider->moves_outputs()) return build_as(node.type, Op::conv2d, both, std::move(attrs), node.region);
      return wider->result(build(Op::conv2d, both, std::move(attrs), node.region), node.type);
    }
    const Sizes kernel = wider->kernel();
    attrs.push_back(list("kernel_size", kernel));
    const std::vector<Operand> both{image, wider->gradient(operands[1].value)};
    return wider->narrow(build(Op::conv2d_weight_grad, both, std::move(attrs), node.region), node.type);
  });
}

}  // namespace fusejit::ir
