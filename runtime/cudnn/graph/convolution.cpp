// Values between operations are f32 and never stored; what enters the convolution has the call's dtype. Both, and the
// order of the steps, are what cuDNN's precompiled engines want to see.
#include "runtime/cudnn/graph/convolution.h"

#include "ir/base/check.h"

namespace fusejit::runtime::cudnn {
namespace {

using Part = GraphBuilder::Part;

struct ActivationMode {
  PointwiseMode mode;
  GraphBuilder::Clip clip{};
};

ActivationMode mode_of(const ConvolutionCall& call) {
  switch (call.activation) {
    case Activation::relu:
      return {CUDNN_POINTWISE_RELU_FWD};
    case Activation::relu6:
      return {CUDNN_POINTWISE_RELU_FWD, {.upper = 6.0}};
    case Activation::leaky_relu:
      return {CUDNN_POINTWISE_RELU_FWD, {.slope = call.slope}};
    case Activation::elu:
      return {CUDNN_POINTWISE_ELU_FWD};
    case Activation::sigmoid:
      return {CUDNN_POINTWISE_SIGMOID_FWD};
    case Activation::tanh:
      return {CUDNN_POINTWISE_TANH_FWD};
    case Activation::gelu:
      return {CUDNN_POINTWISE_GELU_FWD};
    case Activation::gelu_tanh:
      return {CUDNN_POINTWISE_GELU_APPROX_TANH_FWD};
    case Activation::silu:
      return {CUDNN_POINTWISE_SWISH_FWD};
    case Activation::softplus:
      return {CUDNN_POINTWISE_SOFTPLUS_FWD};
    case Activation::none:
      break;
  }
  throw InternalError("cudnn: no activation has no mode");
}

// x as the convolution reads it: itself, or the prologue's result.
Part with_prologue(GraphBuilder& graph, const ConvolutionCall& call) {
  const Part x = graph.tensor(Role::x, call.x, call.dtype);
  if (call.prologue == Prologue::none) return x;
  const bool relu = call.prologue == Prologue::affine_relu;
  const Part scale = graph.vector(Role::scale, call.x[1], call.dtype);
  const Part shift = graph.vector(Role::shift, call.x[1], call.dtype);
  const Part scaled = graph.value(call.x, DType::f32);
  graph.pointwise(CUDNN_POINTWISE_MUL, x, scale, scaled);
  const Part shifted = graph.value(call.x, relu ? DType::f32 : call.dtype);
  graph.pointwise(CUDNN_POINTWISE_ADD, scaled, shift, shifted);
  if (!relu) return shifted;
  const Part result = graph.value(call.x, call.dtype);
  graph.pointwise(CUDNN_POINTWISE_RELU_FWD, shifted, {}, result);
  return result;
}

// Writes steps one after the other; the last one writes the stored result.
class Chain {
 public:
  Chain(GraphBuilder& graph, const Shape& shape, Part result, int steps)
      : graph_(graph), shape_(shape), result_(result), remaining_(steps), value_(next()) {}
  Part value() const { return value_; }
  void step(PointwiseMode mode, std::optional<Part> operand, const GraphBuilder::Clip& clip = {}) {
    const Part out = next();
    graph_.pointwise(mode, value_, operand, out, clip);
    value_ = out;
  }

 private:
  Part next() { return remaining_-- == 0 ? result_ : graph_.value(shape_, DType::f32); }
  GraphBuilder& graph_;
  const Shape& shape_;
  Part result_;
  int remaining_;
  Part value_;
};

void forward(GraphBuilder& graph, const ConvolutionCall& call) {
  const Shape shape = call.y();
  const Part x = with_prologue(graph, call);
  const Part w = graph.tensor(Role::w, call.w, call.dtype);
  const Part y = graph.tensor(Role::y, shape, call.dtype);
  Chain chain(
      graph, shape, y,
      int{call.centre} + int{call.scale} + int{call.side} + int{call.bias} + int{call.activation != Activation::none});
  const auto vector = [&](Role role) { return graph.vector(role, shape[1], call.scale ? DType::f32 : call.dtype); };
  graph.convolution(call, x, w, chain.value());
  if (call.centre) chain.step(CUDNN_POINTWISE_SUB, vector(Role::output_mean));
  if (call.scale) chain.step(CUDNN_POINTWISE_MUL, vector(Role::output_scale));
  if (call.side) chain.step(CUDNN_POINTWISE_ADD, graph.tensor(Role::side, shape, call.dtype));
  if (call.bias) chain.step(CUDNN_POINTWISE_ADD, vector(Role::bias));
  if (call.activation != Activation::none) {
    const ActivationMode activation = mode_of(call);
    chain.step(activation.mode, {}, activation.clip);
  }
  if (call.sums == Sums::statistics) {
    graph.statistics(y, graph.vector(Role::sum, shape[1], DType::f32),
                     graph.vector(Role::second_sum, shape[1], DType::f32));
  }
}

// What the relu's gradient compares with 0.
Part mask_of(GraphBuilder& graph, const ConvolutionCall& call) {
  const std::int64_t channels = call.x[1];
  if (call.mask == Mask::output) return graph.tensor(Role::mask, call.x, call.dtype);
  if (call.mask == Mask::bits) return graph.tensor(Role::mask, call.x, DType::b1);
  Part value = graph.tensor(Role::pre_norm, call.x, call.dtype);
  const auto step = [&](PointwiseMode mode, Role role) {
    const Part out = graph.value(call.x, DType::f32);
    graph.pointwise(mode, value, graph.vector(role, channels, DType::f32), out);
    value = out;
  };
  step(CUDNN_POINTWISE_SUB, Role::mean);
  step(CUDNN_POINTWISE_MUL, Role::inverse_std);
  step(CUDNN_POINTWISE_MUL, Role::gamma);
  step(CUDNN_POINTWISE_ADD, Role::beta);
  return value;
}

void gradient_sums(GraphBuilder& graph, const ConvolutionCall& call, Part dz) {
  const std::int64_t channels = call.x[1];
  const auto vector = [&](Role role) { return graph.vector(role, channels, DType::f32); };
  if (call.sums == Sums::bias) return graph.sum(dz, vector(Role::sum));
  const Part pre_norm = graph.tensor(Role::pre_norm, call.x, call.dtype);
  if (call.sums == Sums::batch_norm_weights) {
    graph.batch_norm_weights({.dz = dz,
                              .pre_norm = pre_norm,
                              .mean = vector(Role::mean),
                              .inverse_std = vector(Role::inverse_std),
                              .gamma = vector(Role::gamma),
                              .dbeta = vector(Role::sum),
                              .dgamma = vector(Role::second_sum),
                              .coefficient_dy = vector(Role::coefficient_dy),
                              .coefficient_x = vector(Role::coefficient_x),
                              .coefficient_one = vector(Role::coefficient_one)});
    return;
  }
  graph.sum(dz, vector(Role::sum));
  const Part centred = graph.value(call.x, DType::f32), product = graph.value(call.x, DType::f32);
  graph.pointwise(CUDNN_POINTWISE_SUB, pre_norm, vector(Role::mean), centred);
  graph.pointwise(CUDNN_POINTWISE_MUL, dz, centred, product);
  graph.sum(product, vector(Role::second_sum));
}

void input_gradient(GraphBuilder& graph, const ConvolutionCall& call) {
  const Part dy = graph.tensor(Role::y, call.y(), call.dtype);
  const Part w = graph.tensor(Role::w, call.w, call.dtype);
  const Part dx = graph.tensor(Role::x, call.x, call.dtype);
  Chain chain(graph, call.x, dx, int{call.side} + int{call.mask != Mask::none});
  graph.convolution(call, chain.value(), w, dy);
  if (call.side) chain.step(CUDNN_POINTWISE_ADD, graph.tensor(Role::side, call.x, call.dtype));
  if (call.mask != Mask::none) chain.step(CUDNN_POINTWISE_RELU_BWD, mask_of(graph, call));
  if (call.sums != Sums::none) gradient_sums(graph, call, dx);
}

void weight_gradient(GraphBuilder& graph, const ConvolutionCall& call) {
  const Part x = with_prologue(graph, call);
  const Part dy = graph.tensor(Role::y, call.y(), call.dtype);
  graph.convolution(call, x, graph.tensor(Role::w, call.w, call.dtype), dy);
}

}  // namespace

OperationGraph build_graph(const std::shared_ptr<const Library>& library, const ConvolutionCall& call) {
  call.check();
  GraphBuilder graph(library, call.layout);
  switch (call.direction) {
    case Direction::forward:
      forward(graph, call);
      break;
    case Direction::input_gradient:
      input_gradient(graph, call);
      break;
    case Direction::weight_gradient:
      weight_gradient(graph, call);
      break;
  }
  return std::move(graph).finish();
}

}  // namespace fusejit::runtime::cudnn
