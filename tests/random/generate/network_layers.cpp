#include "tests/random/generate/network_layers.h"

#include <algorithm>

#include "fusejit/composed.h"
#include "ir/base/check.h"
#include "ir/ops/compose.h"
#include "tests/random/generate/dims.h"

namespace fusejit::testing {

using namespace ir;

Layers::Layers(const Network& network) : network_(network) {
  const Dims image{network.batch, network.channels, network.height, network.width};
  x_ = add("x", {network.dtype, Shape(image), network.nhwc ? Layout::nhwc : Layout::standard});
}

Value Layers::to_rows(const Value& v) { return build(Op::permute, {v}, {{"dims", {0, 2, 3, 1}}}); }
Value Layers::to_image(const Value& v) { return build(Op::permute, {v}, {{"dims", {0, 3, 1, 2}}}); }

Value Layers::add(const std::string& name, const Type& type) {
  parameters_.push_back(parameter(type, name));
  return parameters_.back();
}

Value Layers::fresh(const char* name, const Dims& dims, DType dtype) {
  const Layout layout = dims.size() == 4 && network_.nhwc_weights ? Layout::nhwc : Layout::standard;
  return add(scope_ + std::to_string(part_++) + "_" + name, {dtype, Shape(dims), layout});
}

Value Layers::dropout(const Value& v) {
  if (!seed_) seed_ = add("seed", {i64, Shape{}});
  return build(Op::dropout, {v, seed_}, {{"p", 0.25}, {"stream", stream_++}});
}

Value Layers::dropout2d(const Value& v) {
  const Dims channels{v.type().shape[0], v.type().shape[1], 1, 1};
  const Value ones = build(Op::full, {}, {{"shape", list(channels)}, {"value", 1}, {"dtype", v.type().dtype}});
  return build(Op::mul, {v, dropout(ones)});
}

Value Layers::convolution(const Value& v, std::int64_t outputs, const Block& b, bool padded) {
  const std::int64_t k = b.kernel, reach = b.dilation * (k - 1), low = reach / 2, high = reach - low;
  FJ_CHECK(v.type().shape[1] % b.groups == 0 && outputs % b.groups == 0, "channels are not in {} groups", b.groups);
  const Value w = fresh("w", {outputs, v.type().shape[1] / b.groups, k, k});
  // An even window is padded on one side; a strided one also goes without.
  const Dims padding = !padded || (b.bias && b.stride > 1) ? Dims{0, 0, 0, 0} : Dims{low, low, high, high};
  return biased(build(Op::conv2d, {v, w},
                      {{"stride", {b.stride, b.stride}},
                       {"padding", list(padding)},
                       {"dilation", {b.dilation, b.dilation}},
                       {"groups", b.groups}}),
                b.bias);
}

Value Layers::pointwise(const Value& v, std::int64_t outputs, int stride, bool bias, int groups) {
  Block b;
  b.stride = stride, b.bias = bias, b.groups = groups;
  return convolution(v, outputs, b);
}

Value Layers::depthwise(const Value& v, Block b) {
  b.groups = static_cast<int>(v.type().shape[1]);
  return convolution(v, v.type().shape[1], b);
}

Value Layers::transposed(const Value& v, std::int64_t outputs, const Block& b, Dims size) {
  const Shape& s = v.type().shape;
  FJ_CHECK(s[1] % b.groups == 0 && outputs % b.groups == 0, "channels are not in {} groups", b.groups);
  const std::int64_t reach = b.dilation * (b.kernel - 1) + 1;
  Dims padding(4, (b.kernel - 1) / 2);
  for (std::size_t d = 0; d < 2; ++d) {
    const std::int64_t whole = (s[static_cast<int>(d) + 2] - 1) * b.stride + reach;  // without padding
    if (size.size() == d) {                                                          // as small as fits, or one more
      size.push_back(whole - padding[d] - padding[d + 2] + (b.gated && b.stride > 1 ? 1 : 0));
    } else {
      const std::int64_t both = std::max<std::int64_t>(0, whole - size[d]);
      padding[d] = both / 2, padding[d + 2] = both - both / 2;
    }
  }
  const Value w = fresh("w", {s[1], outputs / b.groups, b.kernel, b.kernel});
  return biased(build(Op::conv2d_input_grad, {v, w},
                      {{"input_size", list(size)},
                       {"stride", {b.stride, b.stride}},
                       {"padding", list(padding)},
                       {"dilation", {b.dilation, b.dilation}},
                       {"groups", b.groups}}),
                b.bias);
}

Value Layers::linear(const Value& v, std::int64_t outputs, bool bias) {
  const Shape& s = v.type().shape;
  const Value y = build(Op::linear, {v, fresh("w", {outputs, s[s.rank() - 1]})});
  return bias ? build(Op::add, {y, fresh("bias", {outputs})}) : y;
}

Value Layers::norm(const Value& v, Norm norm) {
  const Shape s = v.type().shape;
  const Dims one{s[1]};
  const DType dtype = network_.wide_norms ? compute_type(network_.dtype) : network_.dtype;
  const auto affine = [&](Op op, const Dims& dims, std::vector<AttrInit> attrs, const Value& of) {
    const Value gamma = fresh("gamma", dims, dtype);
    return build(op, {of, gamma, fresh("beta", dims, dtype)}, std::move(attrs));
  };
  // Few values vary too little: their variance, near 0, would amplify every rounding.
  const auto need = [](std::int64_t values) { FJ_CHECK(values >= 8, "{} values are too few to normalise", values); };
  switch (norm) {
    case Norm::none:
    case Norm::count_:
      return v;
    case Norm::batch: {
      need(s[0] * s[2] * s[3]);
      const Value y = affine(Op::batch_norm_train, one, {}, v);
      track(v);
      return y;
    }
    case Norm::frozen: {
      const Value mean = fresh("mean", one, dtype), var = fresh("var", one, dtype), gamma = fresh("gamma", one, dtype);
      return build(Op::batch_norm, {v, mean, var, gamma, fresh("beta", one, dtype)});
    }
    case Norm::layer:
      need(s[1] * s[2] * s[3]);
      return affine(Op::layer_norm, {s[1], s[2], s[3]}, {{"normalized_shape", {s[1], s[2], s[3]}}}, v);
    case Norm::channels:
      return to_image(rows_norm(to_rows(v)));
    case Norm::group: {
      const std::int64_t groups = s[1] % 4 == 0 ? 4 : s[1] % 2 == 0 ? 2 : 1;
      need(s[1] / groups * s[2] * s[3]);
      return affine(Op::group_norm, one, {{"num_groups", groups}}, v);
    }
    case Norm::instance:
      need(s[2] * s[3]);
      return affine(Op::instance_norm, one, {}, v);
    case Norm::unit:  // each pixel's channels as a vector of length 1
      need(s[1]);
      return recorded({v}, [](const auto& in) { return in[0] / (fusejit::norm(in[0], 2, {1}, true) + 0.125); });
  }
  return v;
}

Value Layers::rows_norm(const Value& v) {
  const std::int64_t last = v.type().shape[v.type().shape.rank() - 1];
  FJ_CHECK(last >= 8, "{} values are too few to normalise", last);
  const Value gamma = fresh("gamma", {last});
  return build(Op::layer_norm, {v, gamma, fresh("beta", {last})}, {{"normalized_shape", {last}}});
}

Value Layers::activate(const Value& v, Activation activation) {
  switch (activation) {
    case Activation::none:
    case Activation::count_:
      return v;
    case Activation::relu:
      return build(Op::relu, {v});
    case Activation::relu6:
      return build(Op::relu6, {v});
    case Activation::leaky_relu:
      return build(Op::leaky_relu, {v}, {{"negative_slope", 0.1}});
    case Activation::elu:
      return build(Op::elu, {v});
    case Activation::selu:
      return build(Op::selu, {v});
    case Activation::gelu:
      return build(Op::gelu, {v});
    case Activation::gelu_tanh:
      return build(Op::gelu, {v}, {{"approximate", "tanh"}});
    case Activation::silu:
      return build(Op::silu, {v});
    case Activation::mish:
      return build(Op::mish, {v});
    case Activation::softplus:
      return build(Op::softplus, {v});
    case Activation::hardsigmoid:
      return build(Op::hardsigmoid, {v});
    case Activation::hardswish:
      return build(Op::hardswish, {v});
    case Activation::tanh:
      return build(Op::tanh, {v});
    case Activation::sigmoid:
      return build(Op::sigmoid, {v});
    case Activation::prelu: {
      const Value slope = build(Op::reshape, {fresh("slope", {v.type().shape[1]})}, {{"shape", {-1, 1, 1}}});
      return build(Op::where, {build(Op::gt, {v, 0}), v, build(Op::mul, {v, slope})});
    }
  }
  return v;
}

Value Layers::gate(const Value& v, Activation activation) {
  const std::int64_t channels = v.type().shape[1], inner = std::max<std::int64_t>(1, channels / 4);
  Value s = build(Op::mean, {v}, {{"dim", {2, 3}}, {"keepdim", true}});
  s = build(Op::relu, {pointwise(s, inner, 1, true)});
  s = pointwise(s, channels, 1, true);
  s = build(activation == Activation::hardswish ? Op::hardsigmoid : Op::sigmoid, {s});
  return build(Op::mul, {v, s});
}

Value Layers::pool(const Value& v, const Block& b) {
  const Shape& s = v.type().shape;
  const std::int64_t k = std::max(2, b.kernel), stride = b.stride, pad = k / 2;
  const std::vector<AttrInit> window{{"kernel_size", {k, k}}, {"stride", {stride, stride}}};
  auto padded = window;
  padded.emplace_back("padding", std::span<const std::int64_t>(Dims{pad, pad, pad, pad}));
  switch (b.pooling) {
    case Pooling::max:
      return build(Op::max_pool2d, {v}, window);
    case Pooling::max_padded:
      padded.emplace_back("dilation", std::span<const std::int64_t>(Dims{b.dilation, b.dilation}));
      return build(Op::max_pool2d, {v}, padded);
    case Pooling::average:
      return build(Op::avg_pool2d, {v}, window);
    case Pooling::average_inside:
      padded.emplace_back("count_include_pad", false);
      return build(Op::avg_pool2d, {v}, padded);
    default:
      break;
  }
  const Dims size{std::max<std::int64_t>(1, s[2] / (stride + 1)), std::max<std::int64_t>(1, s[3] / stride)};
  return build(Op::adaptive_avg_pool2d, {v}, {{"output_size", list(size)}});
}

Value Layers::biased(const Value& v, bool bias) {
  return bias ? build(Op::bias_add, {v, fresh("bias", {v.type().shape[1]})}) : v;
}

void Layers::track(const Value& v) {
  using namespace ir::expr;
  const Dims dims{0, 2, 3};
  const Value wide = compose::wide(v);
  const auto blend = [&](const char* name, const Value& now) {
    const Value before = add(scope_ + std::to_string(part_++) + "_" + name, now.type());
    statistics_.emplace_back("new " + before->name, before * 0.9 + now * 0.1);
  };
  blend("running_mean", build(Op::mean, {wide}, {{"dim", list(dims)}}));
  blend("running_var", build(Op::var, {wide}, {{"dim", list(dims)}, {"correction", 1}}));
}

}  // namespace fusejit::testing
