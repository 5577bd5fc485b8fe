// Images of few channels in front of a library's convolution get channels of zeros, up to what its tensor cores load at
// once (16 bytes):
//   conv2d(x, w) = conv2d(pad(x), pad(w)),   conv2d_weight_grad(x, dy) = the first channels of that of pad(x).
// Photographs have three channels: their convolution ran at 53 of an H200's 800 TFLOP/s in bf16. They are copied to
// NHWC in any case, and the zeros are written by that copy.
#include <array>
#include <map>

#include "ir/passes/passes.h"
#include "ir/rewrite.h"

namespace fusejit::ir {
namespace {

constexpr std::int64_t kBytesAtOnce = 16;
constexpr std::int64_t kMostTimes = 3;  // as many channels: the library multiplies by the zeros

Value padded(const Value& image, std::int64_t channels, std::uint32_t region) {
  const std::array<std::int64_t, 4> low{}, high{0, channels - image.type().shape[1], 0, 0};
  return build(Op::pad, {image},
               {{"low", std::span<const std::int64_t>(low)}, {"high", std::span<const std::int64_t>(high)}}, region);
}

// An attribute for each that the node has.
std::vector<AttrInit> convolution_attrs(const Node& node) {
  std::vector<AttrInit> attrs{{"stride", node.attrs.ints("stride")},
                              {"padding", node.attrs.ints("padding")},
                              {"dilation", node.attrs.ints("dilation")},
                              {"groups", node.attrs.integer("groups")}};
  if (node.op == Op::conv2d_weight_grad) attrs.emplace_back("kernel_size", node.attrs.ints("kernel_size"));
  return attrs;
}

}  // namespace

Graph pad_channels(const Graph& graph, const Target& target) {
  if (target.cudnn == CudnnMode::off) return graph;
  std::map<const Node*, Value> images;  // padded: one serves the convolution and its gradient
  return rewrite(graph, [&](const Node& node, const std::vector<Operand>& operands) -> Value {
    if (node.op != Op::conv2d && node.op != Op::conv2d_weight_grad) return {};
    const Type& x = operands[0].value.type();
    const std::int64_t channels = x.shape[1], wide = kBytesAtOnce / bytes(x.dtype, 1);
    if (!suits_library(node, target) || node.attrs.integer("groups") != 1 || x.dtype == DType::f64) return {};
    if (channels >= wide || kMostTimes * channels < wide) return {};
    Value& image = images[operands[0].value.get()];
    if (!image) image = padded(operands[0].value, wide, node.region);
    if (node.op == Op::conv2d)
      return build_as(node.type, Op::conv2d, {image, padded(operands[1].value, wide, node.region)},
                      convolution_attrs(node), node.region);
    const Value whole = build(Op::conv2d_weight_grad, {image, operands[1].value}, convolution_attrs(node), node.region);
    const std::array<std::int64_t, 4> starts{}, steps{1, 1, 1, 1};
    return build_as(node.type, Op::slice, {whole},
                    {{"starts", std::span<const std::int64_t>(starts)},
                     {"stops", node.type.shape.dims()},
                     {"steps", std::span<const std::int64_t>(steps)}},
                    node.region);
  });
}

}  // namespace fusejit::ir
