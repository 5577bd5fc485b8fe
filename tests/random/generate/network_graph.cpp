// From the description of a network to its training graph, written as a front end would record it.
#include <algorithm>
#include <cmath>
#include <limits>

#include "fusejit/composed.h"
#include "ir/base/check.h"
#include "ir/ops/compose.h"
#include "ir/passes/grad.h"
#include "ir/passes/recompute.h"
#include "tests/random/generate/dims.h"
#include "tests/random/generate/network_layers.h"

namespace fusejit::testing {
namespace {

using namespace ir;

// y, added to x or to its projection to y's shape.
Value with_skip(Layers& l, const Value& x, const Value& y, const Block& b) {
  if (x.type().shape == y.type().shape) return build(Op::add, {y, x});
  FJ_CHECK(!(b.bias && b.stride > 1) || b.kernel == 1, "a projection does not fit a window without padding");
  Value skip = x;
  if (b.gated && b.stride > 1 && b.kernel % 2 == 1) {  // ResNet-D: average, then project
    Block pool = b;
    pool.kernel = 3, pool.pooling = Pooling::average_inside;
    skip = l.pointwise(l.pool(x, pool), y.type().shape[1]);
  } else {
    skip = l.pointwise(x, y.type().shape[1], b.stride);
  }
  return build(Op::add, {y, l.norm(skip, b.norm)});
}

Value attention(Layers& l, const Value& x, const Block& b) {
  const Shape s = x.type().shape;
  const std::int64_t images = s[0], channels = s[1], tokens = s[2] * s[3];
  const std::int64_t heads = channels % 4 == 0 ? 4 : channels % 3 == 0 ? 3 : 1;
  FJ_CHECK(tokens <= 144, "{} tokens are too many", tokens);
  Value rows =
      build(Op::permute, {build(Op::reshape, {x}, {{"shape", {images, channels, tokens}}})}, {{"dims", {0, 2, 1}}});
  const Value inner = l.rows_norm(rows);
  // Projected one by one, or at once and taken apart, as nn::MultiheadAttention does.
  const Value packed = b.width == 2 ? l.linear(inner, 3 * channels, b.bias) : Value();
  std::int64_t part = 0;
  const auto headed = [&](const Dims& order) {
    const Value own = packed ? build(Op::slice, {packed},
                                     {{"starts", {0, 0, part * channels}},
                                      {"stops", {images, tokens, (part + 1) * channels}},
                                      {"steps", {1, 1, 1}}})
                             : l.linear(inner, channels, b.bias);
    ++part;
    const Value v = build(Op::reshape, {own}, {{"shape", {images, tokens, heads, channels / heads}}});
    return build(Op::permute, {v}, {{"dims", list(order)}});
  };
  const Value q = headed({0, 2, 1, 3}), k = headed({0, 2, 3, 1}), v = headed({0, 2, 1, 3});
  const double scale = 1 / std::sqrt(static_cast<double>(channels / heads));
  Value scores = build(Op::mul, {build(Op::matmul, {q, k}), scale});
  if (b.stride > 1) {  // no pixel attends to later ones
    scores = l.recorded({scores}, [&](const auto& in) {
      return masked_fill(in[0], triu(ones({tokens, tokens}), 1) > 0, -std::numeric_limits<double>::infinity());
    });
  }
  const Value share = build(Op::softmax, {scores}, {{"dim", 3}});
  Value y = build(Op::permute, {build(Op::matmul, {share, v})}, {{"dims", {0, 2, 1, 3}}});
  y = l.linear(build(Op::reshape, {y}, {{"shape", {images, tokens, channels}}}), channels, b.bias);
  rows = build(Op::add, {rows, y});
  if (b.gated) {
    const Activation activation = b.activation == Activation::prelu ? Activation::gelu : b.activation;
    y = l.linear(l.activate(l.linear(l.rows_norm(rows), channels * b.width), activation), channels);
    rows = build(Op::add, {rows, y});
  }
  return build(Op::reshape, {build(Op::permute, {rows}, {{"dims", {0, 2, 1}}})}, {{"shape", s.dims()}});
}

Value mixer(Layers& l, const Value& x, Block b) {
  b.stride = 1;
  Value y = l.rows_norm(Layers::to_rows(l.depthwise(x, b)));
  FJ_CHECK(y.type().shape[1] == x.type().shape[2], "the image has changed");
  const std::int64_t channels = x.type().shape[1];
  const Activation activation = b.activation == Activation::prelu ? Activation::gelu : b.activation;
  y = l.linear(l.activate(l.linear(y, channels * b.width), activation), channels);
  y = build(Op::mul, {y, l.fresh("scale", {channels})});
  return build(Op::add, {x, Layers::to_image(y)});
}

Value unet(Layers& l, const Value& x, Block b) {
  const Shape s = x.type().shape;
  Value y = b.gated ? l.convolution(x, b.channels, b) : l.pool(x, b);
  Block inner = b;
  inner.stride = 1;
  y = l.activate(l.norm(l.convolution(y, b.channels, inner), b.norm), b.activation);
  const Dims size{s[2], s[3]};
  if (b.up == Up::transposed) {
    Block up = b;
    up.groups = up.dilation = 1, up.kernel = b.stride + 1, up.bias = false;
    y = l.transposed(y, b.channels, up, size);
  } else if (b.up >= Up::factor) {
    y = composed_up(l, y, b, size);
  } else if (b.up == Up::nearest) {
    y = build(Op::upsample_nearest2d, {y}, {{"output_size", list(size)}});
  } else {
    y = build(Op::upsample_bilinear2d, {y}, {{"output_size", list(size)}, {"align_corners", b.up == Up::corners}});
  }
  y = y.type().shape == s ? build(Op::add, {x, y}) : build(Op::concat, {x, y}, {{"dim", 1}});
  inner.groups = 1;
  return l.activate(l.norm(l.convolution(y, b.channels, inner), b.norm), b.activation);
}

Value shuffle(Layers& l, const Value& x, const Block& b) {
  Value y = l.activate(l.norm(l.convolution(x, b.channels, b), b.norm), b.activation);
  const Shape s = y.type().shape;
  const std::int64_t g = b.groups;
  y = build(Op::reshape, {y}, {{"shape", {s[0], g, s[1] / g, s[2], s[3]}}});
  y = build(Op::permute, {y}, {{"dims", {0, 2, 1, 3, 4}}});
  y = build(Op::reshape, {y}, {{"shape", s.dims()}});
  return with_skip(l, x, l.norm(l.pointwise(y, s[1], 1, false, b.groups), b.norm), b);
}

Value split(Layers& l, const Value& x, Block b) {
  const Shape s = x.type().shape;
  FJ_CHECK(s[1] > 1, "one channel has no halves");
  b.stride = 1;
  const std::int64_t half = s[1] / 2;
  const auto part = [&](std::int64_t from, std::int64_t to) {
    return build(Op::slice, {x},
                 {{"starts", {0, from, 0, 0}}, {"stops", {s[0], to, s[2], s[3]}}, {"steps", {1, 1, 1, 1}}});
  };
  const Value y = l.activate(l.norm(l.convolution(part(half, s[1]), b.channels, b), b.norm), b.activation);
  return build(Op::concat, {part(0, half), y}, {{"dim", 1}});
}

Value block(Layers& l, const Value& x, const Block& b) {
  Block again = b;  // the second convolution keeps the image
  again.stride = 1;
  const auto finish = [&](const Value& v) { return l.activate(l.norm(v, b.norm), b.activation); };
  switch (b.kind) {
    case BlockKind::plain:
      return finish(l.convolution(x, b.channels, b));
    case BlockKind::residual: {
      const Value y = l.convolution(finish(l.convolution(x, b.channels, b)), b.channels, again);
      return l.activate(with_skip(l, x, l.norm(y, b.norm), b), b.activation);
    }
    case BlockKind::pre_activation: {
      const Value first = finish(x), y = finish(l.convolution(first, b.channels, b));
      return with_skip(l, x, l.convolution(y, b.channels, again), b);
    }
    case BlockKind::bottleneck: {
      const std::int64_t inner = std::max(b.channels / 2 / b.groups * b.groups, b.groups);
      Value y = finish(l.convolution(finish(l.pointwise(x, inner)), inner, b));
      if (b.gated) y = l.gate(y, b.activation);
      return l.activate(with_skip(l, x, l.norm(l.pointwise(y, b.channels), b.norm), b), b.activation);
    }
    case BlockKind::inverted: {
      Value y = finish(l.depthwise(finish(l.pointwise(x, x.type().shape[1] * b.width)), b));
      if (b.gated) y = l.gate(y, b.activation);
      y = l.norm(l.pointwise(y, b.channels), b.norm);
      return x.type().shape == y.type().shape ? build(Op::add, {x, y}) : y;
    }
    case BlockKind::dense: {
      Value y = x;
      for (int i = 0; i < 2; ++i) y = build(Op::concat, {y, l.convolution(finish(y), b.channels, again)}, {{"dim", 1}});
      return y;
    }
    case BlockKind::separable:
      return finish(l.pointwise(finish(l.depthwise(x, b)), b.channels));
    case BlockKind::shuffle:
      return shuffle(l, x, b);
    case BlockKind::split:
      return split(l, x, b);
    case BlockKind::transposed:
      return finish(l.transposed(x, b.channels, b));
    case BlockKind::unet:
      return unet(l, x, b);
    case BlockKind::gate:
      return l.gate(x, b.activation);
    case BlockKind::pooling:
      return l.activate(l.norm(l.pool(x, b), b.norm), b.activation);
    case BlockKind::attention:
      return attention(l, x, b);
    case BlockKind::mixer:
      return mixer(l, x, b);
    default:
      return finish(composed_block(l, x, b));
  }
}

// [N,classes], or [N,classes,H,W] of pixels.
Value head(Layers& l, const Value& x, Head head, int classes) {
  const Shape s = x.type().shape;
  switch (head) {
    case Head::pixels:
      return l.pointwise(x, classes, 1, true);
    case Head::maximum:
      return l.linear(build(Op::amax, {x}, {{"dim", {2, 3}}}), classes);
    case Head::strongest: {
      const std::int64_t k = std::min<std::int64_t>(3, s[2] * s[3]);
      const Value y = l.recorded({x}, [k](const auto& in) { return topk(flatten(in[0], 2), k).values; });
      return l.linear(build(Op::flatten, {y}, {{"start_dim", 1}}), classes);
    }
    case Head::logsumexp:
      return l.linear(l.recorded({x}, [](const auto& in) { return logsumexp(in[0], {2, 3}); }), classes);
    case Head::flatten:
      return l.linear(build(Op::flatten, {x}, {{"start_dim", 1}}), classes);
    case Head::adaptive: {
      const Value y = build(Op::adaptive_avg_pool2d, {x}, {{"output_size", {std::min<std::int64_t>(2, s[2]), 1}}});
      return l.linear(build(Op::flatten, {y}, {{"start_dim", 1}}), classes);
    }
    default:
      return l.linear(build(Op::mean, {x}, {{"dim", {2, 3}}}), classes);
  }
}

Value loss_of(Layers& l, const Value& y, const Network& n) {
  const auto target = [&] {
    Dims dims{y.type().shape.dims().begin(), y.type().shape.dims().end()};
    dims.erase(dims.begin() + 1);
    return l.add("class_of_" + std::to_string(n.classes), {i64, Shape(dims)});
  };
  const auto wanted = [&] { return l.add("wanted", {n.dtype, y.type().shape}); };
  switch (n.loss) {
    case Loss::cross_entropy:
      return build(Op::cross_entropy, {y, target()});
    case Loss::smoothed:
      return build(Op::cross_entropy, {y, target()}, {{"ignore_index", 1}, {"label_smoothing", 0.1}});
    case Loss::nll:
      return build(Op::nll_loss, {build(Op::log_softmax, {y}, {{"dim", 1}}), target()});
    case Loss::l1:
      return build(Op::l1_loss, {y, wanted()});
    case Loss::smooth_l1:
      return build(Op::smooth_l1_loss, {y, wanted()}, {{"beta", 0.5}});
    case Loss::binary:
      return build(Op::binary_cross_entropy_with_logits, {y, wanted()});
    default:
      return build(Op::mse_loss, {y, wanted()});
  }
}

Value in_layout(Layout layout, const Value& v) {
  if (v.type().layout == layout) return v;
  return build_in(layout, Op::cast, {v}, build(Op::cast, {v}, {{"dtype", v.type().dtype}})->attrs);
}

// As fj::recomputed() has it: the gradient of y by what it reads, which begins with the only input that is computed.
CustomRule computed_again(const Value& y, std::vector<Value> inputs, std::uint32_t region) {
  CustomRule rule{inputs, {y}, {}};
  rule.backward = [y, inputs = std::move(inputs), region](std::span<const Value> cotangents) {
    const Value boundary[] = {inputs[0]};
    const CustomRule end{{}, {inputs[0]}, {}};
    return gradient({recompute_in_region(y, region, boundary)}, {cotangents[0]}, inputs, std::span(&end, 1));
  };
  return rule;
}

}  // namespace

TrainingGraph training_graph(const Network& network) {
  using namespace ir::expr;
  Layers layers(network);
  Value y = layers.x();
  std::vector<CustomRule> rules;
  for (std::size_t i = 0; i < network.blocks.size(); ++i) {
    layers.enter("b" + std::to_string(i) + "_");
    const Value x = y;
    const std::size_t before = layers.parameters().size();
    y = block(layers, y, network.blocks[i]);
    if (network.blocks[i].dropout) y = network.blocks[i].whole_channels ? layers.dropout2d(y) : layers.dropout(y);
    if (!network.blocks[i].again || y == x) continue;
    std::vector<Value> inputs{x};
    for (std::size_t p = before; p < layers.parameters().size(); ++p)
      if (is_float(layers.parameters()[p].type().dtype)) inputs.push_back(layers.parameters()[p]);
    rules.push_back(computed_again(y, std::move(inputs), static_cast<std::uint32_t>(i + 1)));
  }
  layers.enter("head_");
  const Value logits = head(layers, y, network.head, network.classes);
  std::vector<Value> trained = layers.parameters();
  std::erase_if(trained, [](const Value& p) {
    return !is_float(p.type().dtype) || p->name.find("running") != std::string::npos || p->name.ends_with("_mean") ||
           p->name.ends_with("_var") || number_in_name(p->name);
  });
  const Value loss = loss_of(layers, logits, network);
  const Value one =
      build(Op::full, {}, {{"shape", std::span<const std::int64_t>()}, {"value", 1}, {"dtype", network.dtype}});
  const std::vector<Value> gradients = gradient({loss}, {one}, trained, rules);
  std::vector<std::string> names{"loss"};
  std::vector<Value> results{loss};
  for (const auto& [name, value] : layers.statistics()) names.push_back(name), results.push_back(value);
  const std::vector<Value> of_forward = results;
  const Value rate = network.optimizer == Optimizer::none ? Value() : layers.add("rate", {network.dtype, Shape{}});
  std::vector<const Node*> overwritten;
  const auto give = [&](const std::string& name, const Value& of, const Value& result) {
    names.push_back(name);
    results.push_back(in_layout(of.type().layout, result));
  };
  for (std::size_t i = 0; i < trained.size(); ++i) {
    const Value &w = trained[i], &g = gradients[i];
    if (!rate || i == 0) {  // of x there is a gradient
      give("gradient of " + w->name, w, g);
      continue;
    }
    overwritten.push_back(w.get());
    const auto state = [&](const char* what) {
      overwritten.push_back(layers.add(w->name + what, w.type()).get());
      return layers.parameters().back();
    };
    Value step = g;
    if (network.optimizer == Optimizer::momentum) {
      const Value m = state("_momentum");
      step = m * 0.9 + g;
      give("momentum of " + w->name, m, step);
    } else if (network.optimizer == Optimizer::adam) {
      const Value m = state("_momentum"), v = state("_var");
      const Value mean = m * 0.9 + g * 0.1, square = v * 0.99 + build(Op::square, {g}) * 0.01;
      give("momentum of " + w->name, m, mean), give("square of " + w->name, v, square);
      step = mean / (build(Op::sqrt, {square}) + 1e-6);
    }
    give("update of " + w->name, w, w - rate * step);
  }
  std::vector<bool> donated;
  for (const Value& p : layers.parameters())
    donated.push_back(std::find(overwritten.begin(), overwritten.end(), p.get()) != overwritten.end());
  return {capture("network", layers.parameters(), results), capture("network", layers.parameters(), of_forward), names,
          donated};
}

}  // namespace fusejit::testing
