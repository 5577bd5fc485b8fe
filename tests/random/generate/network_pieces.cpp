// Blocks of random networks that take images apart, weigh or reorder the pieces, and join them again: functions of
// fusejit/composed.h, which the front end records.
#include <cmath>

#include "fusejit/composed.h"
#include "ir/base/check.h"
#include "tests/random/generate/dims.h"
#include "tests/random/generate/network_layers.h"

namespace fusejit::testing {

using namespace ir;

namespace {

using In = const std::vector<Tensor>&;

Tensor as_channels(const Tensor& x) { return reshape(x, {x.size(0), x.size(1), 1, 1}); }

// Depthwise branches of growing dilation, of which each channel takes a share that all of them decide (selective
// kernels).
Value branched(Layers& l, const Value& x, Block b) {
  const int count = b.width + 2;
  std::vector<Value> operands{l.pointwise(x, b.channels, b.stride)};
  b.stride = b.dilation = 1, b.bias = false;
  for (; b.dilation < count; ++b.dilation) operands.push_back(l.depthwise(operands[0], b));
  operands.push_back(l.fresh("w", {count * (b.channels + 1), b.channels}));
  return l.recorded(operands, [&](In in) {
    const Tensor all = stack({in.begin(), in.end() - 1}, 1);  // [N,branches,C,H,W]
    const Tensor scores = linear(mean(sum(all, {1}), {2, 3}), in.back());
    const std::vector<Tensor> parts = split(scores, {count * b.channels, count}, 1);  // of channels, of branches
    const Tensor share = softmax(stack(split(parts[0], b.channels, 1), 1) + unsqueeze(parts[1], 2), 1);
    if (b.gated) return sum(all * reshape(share, {all.size(0), count, b.channels, 1, 1}), {1});
    const std::vector<Tensor> shares = unbind(share, 1), branches = unbind(all, 1);
    Tensor y = branches[0] * as_channels(shares[0]);
    for (std::size_t i = 1; i < branches.size(); ++i) y = y + branches[i] * as_channels(shares[i]);
    return y;
  });
}

// A convolution, of standardised weights if gated, whose channels count for what their means and deviations say (style
// pooling). Places that are learnt keep deviations away from 0, where their gradient is nothing but rounding.
Value standardised(Layers& l, const Value& x, const Block& b) {
  const Shape s = x.type().shape;
  FJ_CHECK(s[1] % b.groups == 0, "channels are not in {} groups", b.groups);
  const std::int64_t inputs = s[1] / b.groups, fan = inputs * b.kernel * b.kernel;
  FJ_CHECK(!b.gated || fan >= 8, "{} weights are too few to standardise", fan);
  const Value w = l.fresh("w", {b.channels, inputs, b.kernel, b.kernel});
  const Value y = l.recorded({x, w}, [&](In in) {
    const Dims one{1, 2, 3};
    const Tensor standard =
        b.gated ? (in[1] - mean(in[1], one, true)) / (std(in[1], one, 1, true) * std::sqrt(static_cast<double>(fan)))
                : in[1];
    return conv2d(in[0], standard,
                  {.stride = b.stride, .padding = b.kernel / 2, .dilation = b.dilation, .groups = b.groups});
  });
  const Shape& shape = y.type().shape;
  FJ_CHECK(shape[2] * shape[3] >= 4, "{} pixels are too few to deviate", shape[2] * shape[3]);
  const Value places = l.fresh("places", {b.channels, shape[2], shape[3]});
  return l.recorded({y, places, l.fresh("style", {b.channels, 2})}, [&](In in) {
    const Tensor placed = in[0] + in[1];
    const Tensor style = stack({mean(placed, {2, 3}), std(placed, {2, 3}, b.bias ? 0 : 1)}, -1);  // [N,C,2]
    return in[0] * as_channels(sigmoid(sum(style * in[2], {2})));
  });
}

// Image by image, channels beside what correlates with them, as much of it as the products on a diagonal say.
Value correlated(Layers& l, const Value& x, const Block& b) {
  const Shape s = x.type().shape;
  const std::int64_t offset = b.gated ? 1 : 0;  // of neighbours, else of each channel with itself
  FJ_CHECK(s[1] > offset && s[1] <= 64, "{} channels", s[1]);
  const Value w = l.fresh("scores", {s[1] - offset});
  return l.recorded({x, w}, [&](In in) {
    std::vector<Tensor> images;
    for (const Tensor& image : unbind(flatten(in[0], 2))) {
      const Tensor products = matmul(image, transpose(image, 0, 1)) * (1 / static_cast<double>(s[2] * s[3]));
      const Tensor energy = diagonal(products);
      const Tensor correlation = products / sqrt(outer(energy, energy) + 0.25);
      const Tensor score = sigmoid(dot(diagonal(products, offset), in[1]) / static_cast<double>(s[1]));
      images.push_back(image + matmul(correlation, image) * (score / static_cast<double>(s[1])));
    }
    return reshape(stack(images), Dims(s.begin(), s.end()));
  });
}

// Channels in the order of scores that are learnt, or of those and their means, times what the scores in that order
// say; and back where they were (width 2 and 3). Means that are rounded to 16 bits have another order.
Value ordered(Layers& l, const Value& x, const Block& b) {
  const Shape s = x.type().shape;
  FJ_CHECK(s[1] <= 64, "{} channels", s[1]);
  const bool by_means = b.gated && bits(x.type().dtype) > 16;
  return l.recorded({x, l.fresh("spaced", {s[1]}), l.fresh("slope", {s[1]})}, [&](In in) {
    const auto move = [&](const Tensor& image, const Tensor& order) {
      return gather(image, 1, expand(as_channels(order), Dims(s.begin(), s.end())));
    };
    const Tensor scores = by_means ? mean(in[0], {2, 3}) + in[1] : expand(in[1], {s[0], s[1]});
    const Tensor order = argsort(scores, 1, b.bias);
    const Tensor first = reshape(arange(0, s[0]) * s[1], {s[0], 1});  // of each image in what take() counts
    const Tensor y = move(in[0], order) * as_channels(sigmoid(take(scores, order + first) * in[2]));
    return b.width > 1 ? in[0] + move(y, argsort(order, 1)) : y;
  });
}

// Pixels beside the mean of the bin that labels put them into (superpixels): rows of channels, or channels of pixels.
Value binned(Layers& l, const Value& x, const Block& b) {
  const Shape s = x.type().shape;
  const std::int64_t pixels = s[2] * s[3], bins = 2 + b.width;
  const Value labels = l.fresh(("class_of_" + std::to_string(bins)).c_str(), {s[0], pixels}, DType::i64);
  return l.recorded({x, labels, l.fresh("start", {s[1], bins})}, [&](In in) {
    const Tensor counts = scatter_add(ones({s[0], bins}, in[0].dtype()), 1, in[1], ones({s[0], pixels}, in[0].dtype()));
    Tensor image = flatten(in[0], 2), start = in[2];
    if (b.gated) image = transpose(image, 1, 2), start = transpose(start, 0, 1);
    const int places = b.gated ? 1 : 2, channels = 3 - places;
    const Tensor index = expand(unsqueeze(in[1], channels), Dims(image.shape().begin(), image.shape().end()));
    Dims shape{s[0], s[1], bins};
    if (b.gated) shape = {s[0], bins, s[1]};
    const Tensor means = scatter_add(expand(start, shape), places, index, image) / unsqueeze(counts, channels);
    Tensor y = image + gather(means, places, index);
    if (b.gated) y = transpose(y, 1, 2);
    return reshape(y, Dims(s.begin(), s.end()));
  });
}

}  // namespace

Value pieces_block(Layers& l, const Value& x, const Block& b) {
  switch (b.kind) {
    case BlockKind::branched:
      return branched(l, x, b);
    case BlockKind::standardised:
      return standardised(l, x, b);
    case BlockKind::correlated:
      return correlated(l, x, b);
    case BlockKind::ordered:
      return ordered(l, x, b);
    default:
      return binned(l, x, b);
  }
}

}  // namespace fusejit::testing
