#include "bench/peers/onednn/chain.h"

#include <cmath>

namespace onednn {

using dnnl::algorithm;
using dnnl::prop_kind;

void fill(const memory& target, float mean, float deviation, dnnl::stream& stream) {
  const memory::desc desc = target.get_desc();
  Dims strides(desc.get_dims().size(), 1);
  for (std::size_t i = strides.size() - 1; i > 0; --i) strides[i - 1] = strides[i] * desc.get_dims()[i];
  memory plain({desc.get_dims(), Type::f32, strides}, target.get_engine());
  static std::mt19937 random(1);
  std::normal_distribution<float> number(mean, deviation);
  auto* data = plain.map_data<float>();
  for (std::int64_t i = 0; i < strides[0] * desc.get_dims()[0]; ++i) data[i] = deviation > 0 ? number(random) : mean;
  plain.unmap_data(data);
  memory to = target;
  dnnl::reorder(plain, to).execute(stream, plain, to);
  stream.wait();
}

memory Chain::as(const memory& value, const memory::desc& wanted, std::vector<Call>& calls) {
  if (value.get_desc() == wanted) return value;
  const memory made(wanted, engine_);
  calls.push_back({dnnl::reorder(value, made), {{DNNL_ARG_FROM, value}, {DNNL_ARG_TO, made}}});
  return made;
}

void Chain::add(const memory& into, float scale_a, float scale_b, const memory& b, std::vector<Call>& calls) {
  const dnnl::sum::primitive_desc pd(engine_, into.get_desc(), {scale_a, scale_b}, {into.get_desc(), b.get_desc()});
  calls.push_back(
      {dnnl::sum(pd), {{DNNL_ARG_MULTIPLE_SRC, into}, {DNNL_ARG_MULTIPLE_SRC + 1, b}, {DNNL_ARG_DST, into}}});
}

Gradient Chain::gradient_buffer(const memory::desc& desc) {
  const std::size_t bytes = desc.get_size();
  std::vector<void*>& free = free_[bytes];
  if (free.empty()) {
    buffers_.emplace_back(desc, engine_);
    free.push_back(buffers_.back().get_data_handle());
  }
  void* handle = free.back();
  free.pop_back();
  return {memory(desc, engine_, handle),
          {handle, [this, bytes](void* given_back) { free_[bytes].push_back(given_back); }}};
}

Gradient Chain::gradient_of(Value& value) {
  Gradient sum = value.gradients.front();
  for (std::size_t i = 1; i < value.gradients.size(); ++i) {
    Gradient& other = value.gradients[i];
    // In place needs a gradient that nobody else reads: `sum` and its entry hold it, or another one's entry alone.
    if (sum.hold.use_count() > 2) {
      if (other.hold.use_count() == 1 && other.data.get_desc() == sum.data.get_desc()) {
        std::swap(sum, other);
      } else {
        Gradient copy = gradient_buffer(sum.data.get_desc());
        backward_.push_back(
            {dnnl::reorder(sum.data, copy.data), {{DNNL_ARG_FROM, sum.data}, {DNNL_ARG_TO, copy.data}}});
        sum = copy;
      }
    }
    add(sum.data, 1, 1, as(other.data, sum.data.get_desc(), backward_), backward_);
  }
  value.gradients.clear();
  return sum;
}

memory Chain::parameter(const memory::desc& desc, float mean, float deviation) {
  memory made(desc, engine_);
  fill(made, mean, deviation, stream_);
  return made;
}

void Chain::update(const memory& value, const memory& gradient) {
  const memory momentum = parameter(value.get_desc(), 0, 0);
  add(momentum, 0.9f, 1, as(gradient, value.get_desc(), update_), update_);
  add(value, 1, -rate_, momentum, update_);
}

ValueRef Chain::input(const Dims& dims) {
  memory data({dims, type_, Tag::nchw}, engine_);
  fill(data, 0, 1, stream_);
  return std::make_shared<Value>(Value{data});
}

ValueRef Chain::conv(const ValueRef& x, int outputs, int kernel, int stride, bool with_input_gradient) {
  const Dims in = x->data.get_desc().get_dims(), strides(2, stride), padding(2, kernel / 2);
  const std::int64_t size = (in[2] + 2 * padding[0] - kernel) / stride + 1;
  const Dims out = {in[0], outputs, size, size}, window = {outputs, in[1], kernel, kernel};
  const auto direct = algorithm::convolution_direct;
  const dnnl::convolution_forward::primitive_desc pd(engine_, prop_kind::forward_training, direct, any(in), any(window),
                                                     any(out), strides, padding, padding);
  const memory w = parameter(pd.weights_desc(), 0, std::sqrt(2.f / static_cast<float>(in[1] * kernel * kernel)));
  auto y = std::make_shared<Value>(Value{memory(pd.dst_desc(), engine_)});
  forward_.push_back(
      {dnnl::convolution_forward(pd),
       {{DNNL_ARG_SRC, as(x->data, pd.src_desc(), forward_)}, {DNNL_ARG_WEIGHTS, w}, {DNNL_ARG_DST, y->data}}});
  later_.push_back([=, this] {
    const Gradient g = gradient_of(*y);
    const dnnl::convolution_backward_weights::primitive_desc of_w(engine_, direct, any(in), any(window), any(out),
                                                                  strides, padding, padding, pd);
    const memory gw(of_w.diff_weights_desc(), engine_);
    backward_.push_back({dnnl::convolution_backward_weights(of_w),
                         {{DNNL_ARG_SRC, as(x->data, of_w.src_desc(), backward_)},
                          {DNNL_ARG_DIFF_DST, as(g.data, of_w.diff_dst_desc(), backward_)},
                          {DNNL_ARG_DIFF_WEIGHTS, gw}}});
    update(w, gw);
    if (!with_input_gradient) return;
    const dnnl::convolution_backward_data::primitive_desc of_x(engine_, direct, any(in), any(window), any(out), strides,
                                                               padding, padding, pd);
    const Gradient gx = gradient_buffer(of_x.diff_src_desc());
    backward_.push_back({dnnl::convolution_backward_data(of_x),
                         {{DNNL_ARG_WEIGHTS, as(w, of_x.weights_desc(), backward_)},
                          {DNNL_ARG_DIFF_DST, as(g.data, of_x.diff_dst_desc(), backward_)},
                          {DNNL_ARG_DIFF_SRC, gx.data}}});
    x->gradients.push_back(gx);
  });
  return y;
}

ValueRef Chain::batch_norm(const ValueRef& x, bool relu) {
  const memory::desc desc = x->data.get_desc();
  auto flags = dnnl::normalization_flags::use_scale | dnnl::normalization_flags::use_shift;
  if (relu) flags = flags | dnnl::normalization_flags::fuse_norm_relu;
  const dnnl::batch_normalization_forward::primitive_desc pd(engine_, prop_kind::forward_training, desc, desc, 1e-5f,
                                                             flags);
  const memory::desc channels({desc.get_dims()[1]}, Type::f32, Tag::a);
  const memory scale = parameter(channels, 1, 0), shift = parameter(channels, 0, 0);
  const memory mean(channels, engine_), variance(channels, engine_), bits(pd.workspace_desc(), engine_);
  auto y = std::make_shared<Value>(Value{memory(desc, engine_)});
  std::unordered_map<int, memory> arguments = {{DNNL_ARG_SRC, x->data}, {DNNL_ARG_DST, y->data},
                                               {DNNL_ARG_SCALE, scale}, {DNNL_ARG_SHIFT, shift},
                                               {DNNL_ARG_MEAN, mean},   {DNNL_ARG_VARIANCE, variance}};
  if (relu) arguments[DNNL_ARG_WORKSPACE] = bits;
  forward_.push_back({dnnl::batch_normalization_forward(pd), arguments});
  add(parameter(channels, 0, 0), 0.9f, 0.1f, mean, update_);  // running statistics
  add(parameter(channels, 1, 0), 0.9f, 0.1f, variance, update_);
  later_.push_back([=, this] {
    const Gradient g = gradient_of(*y);
    const dnnl::batch_normalization_backward::primitive_desc of(engine_, prop_kind::backward, desc, desc, desc, 1e-5f,
                                                                flags, pd);
    const Gradient gx = gradient_buffer(desc);
    const memory g_scale(channels, engine_), g_shift(channels, engine_);
    std::unordered_map<int, memory> arguments = {{DNNL_ARG_SRC, x->data},
                                                 {DNNL_ARG_SCALE, scale},
                                                 {DNNL_ARG_MEAN, mean},
                                                 {DNNL_ARG_VARIANCE, variance},
                                                 {DNNL_ARG_DIFF_DST, as(g.data, desc, backward_)},
                                                 {DNNL_ARG_DIFF_SRC, gx.data},
                                                 {DNNL_ARG_DIFF_SCALE, g_scale},
                                                 {DNNL_ARG_DIFF_SHIFT, g_shift}};
    if (relu) arguments[DNNL_ARG_WORKSPACE] = bits;
    backward_.push_back({dnnl::batch_normalization_backward(of), arguments});
    update(scale, g_scale), update(shift, g_shift);
    x->gradients.push_back(gx);
  });
  return y;
}

ValueRef Chain::add_relu(const ValueRef& a, const ValueRef& b) {
  const memory::desc desc = a->data.get_desc();
  dnnl::post_ops relu;
  relu.append_eltwise(algorithm::eltwise_relu, 0, 0);
  dnnl::primitive_attr attributes;
  attributes.set_post_ops(relu);
  const dnnl::binary::primitive_desc pd(engine_, algorithm::binary_add, desc, desc, desc, attributes);
  auto y = std::make_shared<Value>(Value{memory(desc, engine_)});
  forward_.push_back(
      {dnnl::binary(pd),
       {{DNNL_ARG_SRC_0, a->data}, {DNNL_ARG_SRC_1, as(b->data, desc, forward_)}, {DNNL_ARG_DST, y->data}}});
  later_.push_back([=, this] {
    Gradient g = gradient_of(*y);
    const auto from_result = algorithm::eltwise_relu_use_dst_for_bwd;
    const dnnl::eltwise_forward::primitive_desc hint(engine_, prop_kind::forward_training, from_result, desc, desc,
                                                     0.f);
    const dnnl::eltwise_backward::primitive_desc of(engine_, from_result, desc, desc, desc, 0.f, hint);
    const Gradient masked = gradient_buffer(desc);
    backward_.push_back({dnnl::eltwise_backward(of),
                         {{DNNL_ARG_DST, y->data},
                          {DNNL_ARG_DIFF_DST, as(g.data, desc, backward_)},
                          {DNNL_ARG_DIFF_SRC, masked.data}}});
    a->gradients.push_back(masked), b->gradients.push_back(masked);
  });
  return y;
}

ValueRef Chain::pool(const ValueRef& x, algorithm what, int kernel, int stride, int padding) {
  const memory::desc desc = x->data.get_desc();
  const Dims in = desc.get_dims(), window(2, kernel), strides(2, stride), pads(2, padding), dilation(2, 0);
  const std::int64_t size = (in[2] + 2 * padding - kernel) / stride + 1;
  const dnnl::pooling_forward::primitive_desc pd(engine_, prop_kind::forward_training, what, desc,
                                                 any({in[0], in[1], size, size}), strides, window, dilation, pads,
                                                 pads);
  const memory places = what == algorithm::pooling_max ? memory(pd.workspace_desc(), engine_) : memory();
  auto y = std::make_shared<Value>(Value{memory(pd.dst_desc(), engine_)});
  std::unordered_map<int, memory> arguments = {{DNNL_ARG_SRC, x->data}, {DNNL_ARG_DST, y->data}};
  if (places) arguments[DNNL_ARG_WORKSPACE] = places;
  forward_.push_back({dnnl::pooling_forward(pd), arguments});
  later_.push_back([=, this] {
    const Gradient g = gradient_of(*y), gx = gradient_buffer(desc);
    const dnnl::pooling_backward::primitive_desc of(engine_, what, desc, pd.dst_desc(), strides, window, dilation, pads,
                                                    pads, pd);
    std::unordered_map<int, memory> arguments = {{DNNL_ARG_DIFF_DST, as(g.data, pd.dst_desc(), backward_)},
                                                 {DNNL_ARG_DIFF_SRC, gx.data}};
    if (places) arguments[DNNL_ARG_WORKSPACE] = places;
    backward_.push_back({dnnl::pooling_backward(of), arguments});
    x->gradients.push_back(gx);
  });
  return y;
}

ValueRef Chain::linear(const ValueRef& x, int outputs) {
  const Dims in = x->data.get_desc().get_dims(), out = {in[0], outputs}, window = {outputs, in[1], in[2], in[3]};
  const memory::desc wide(out, Type::f32, Tag::ab), bias_desc({outputs}, Type::f32, Tag::a);
  const dnnl::inner_product_forward::primitive_desc pd(engine_, prop_kind::forward_training, any(in), any(window),
                                                       bias_desc, wide);
  const memory w = parameter(pd.weights_desc(), 0, 1 / std::sqrt(static_cast<float>(in[1])));
  const memory bias = parameter(bias_desc, 0, 0);
  auto y = std::make_shared<Value>(Value{memory(wide, engine_)});
  forward_.push_back({dnnl::inner_product_forward(pd),
                      {{DNNL_ARG_SRC, as(x->data, pd.src_desc(), forward_)},
                       {DNNL_ARG_WEIGHTS, w},
                       {DNNL_ARG_BIAS, bias},
                       {DNNL_ARG_DST, y->data}}});
  later_.push_back([=, this] {
    const memory g = as(gradient_of(*y).data, {out, type_, Tag::ab}, backward_);
    const dnnl::inner_product_backward_weights::primitive_desc of_w(engine_, any(in), any(window), bias_desc,
                                                                    {out, type_, Tag::ab}, pd);
    const memory gw(of_w.diff_weights_desc(), engine_), g_bias(bias_desc, engine_);
    backward_.push_back({dnnl::inner_product_backward_weights(of_w),
                         {{DNNL_ARG_SRC, as(x->data, of_w.src_desc(), backward_)},
                          {DNNL_ARG_DIFF_DST, g},
                          {DNNL_ARG_DIFF_WEIGHTS, gw},
                          {DNNL_ARG_DIFF_BIAS, g_bias}}});
    update(w, gw), update(bias, g_bias);
    const dnnl::inner_product_backward_data::primitive_desc of_x(engine_, any(in), any(window), {out, type_, Tag::ab},
                                                                 pd);
    const Gradient gx = gradient_buffer(of_x.diff_src_desc());
    backward_.push_back({dnnl::inner_product_backward_data(of_x),
                         {{DNNL_ARG_WEIGHTS, as(w, of_x.weights_desc(), backward_)},
                          {DNNL_ARG_DIFF_DST, g},
                          {DNNL_ARG_DIFF_SRC, gx.data}}});
    x->gradients.push_back(gx);
  });
  return y;
}

void Chain::finish(const ValueRef& logits) {
  const memory::desc desc = logits->data.get_desc();
  scores_ = memory(desc, engine_), logits_gradient_ = memory(desc, engine_);
  const dnnl::softmax_forward::primitive_desc pd(engine_, prop_kind::forward_training, algorithm::softmax_log, desc,
                                                 desc, 1);
  forward_.push_back({dnnl::softmax_forward(pd), {{DNNL_ARG_SRC, logits->data}, {DNNL_ARG_DST, scores_}}});
  logits->gradients.push_back({logits_gradient_, nullptr});
  while (!later_.empty()) {
    later_.back()();
    later_.pop_back();
  }
}

double Chain::loss_and_gradient() {
  const Dims dims = scores_.get_desc().get_dims();
  auto* scores = scores_.map_data<float>();
  auto* gradient = logits_gradient_.map_data<float>();
  double loss = 0;
  for (std::int64_t n = 0; n < dims[0]; ++n) {
    const std::int64_t label = n % dims[1], row = n * dims[1];
    loss -= scores[row + label] / static_cast<double>(dims[0]);
    for (std::int64_t c = 0; c < dims[1]; ++c) {
      gradient[row + c] = (std::exp(scores[row + c]) - (c == label)) / static_cast<float>(dims[0]);
    }
  }
  scores_.unmap_data(scores), logits_gradient_.unmap_data(gradient);
  return loss;
}

void Chain::run(const std::vector<Call>& calls) {
  for (const Call& call : calls) call.primitive.execute(stream_, call.arguments);
  stream_.wait();
}

double Chain::step() {
  run(forward_);
  const double loss = loss_and_gradient();
  run(backward_), run(update_);
  return loss;
}

std::size_t Chain::moved_bytes() const {
  std::size_t moved = scores_.get_desc().get_size() + logits_gradient_.get_desc().get_size();
  for (const auto* calls : {&forward_, &backward_, &update_})
    for (const Call& call : *calls)
      for (const auto& [name, value] : call.arguments) moved += value.get_desc().get_size();
  return moved;
}

}  // namespace onednn
