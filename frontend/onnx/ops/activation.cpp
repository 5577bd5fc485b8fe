// Activations, softmax and dropout.
#include <cmath>

#include "frontend/onnx/call.h"
#include "ir/base/check.h"

namespace fusejit::onnx {
namespace {

using Tensors = std::vector<Tensor>;

bool is_float_of(double value, double exact) { return static_cast<float>(value) == static_cast<float>(exact); }

Tensors selu_row(const Call& c) {
  const double alpha = c.number("alpha", 1.6732632423543772), gamma = c.number("gamma", 1.0507009873554805);
  const Tensor x = c.tensor(0);
  if (is_float_of(alpha, 1.6732632423543772) && is_float_of(gamma, 1.0507009873554805)) return {selu(x)};
  return {elu(x, alpha) * gamma};
}

Tensors celu_row(const Call& c) {
  const double alpha = c.number("alpha", 1);
  return {maximum(c.tensor(0), 0) + minimum(expm1(c.tensor(0) / alpha) * alpha, 0)};
}

Tensors hard_sigmoid_row(const Call& c) {
  const double alpha = c.number("alpha", 0.2), beta = c.number("beta", 0.5);
  if (is_float_of(alpha, 1.0 / 6) && beta == 0.5) return {hardsigmoid(c.tensor(0))};
  return {clamp(c.tensor(0) * alpha + beta, 0, 1)};
}

// The slope broadcasts to x alone.
Tensors prelu_row(const Call& c) {
  const Tensor x = c.tensor(0);
  return {where(x < 0, x * c.tensor(1), x)};
}

Tensors thresholded_relu_row(const Call& c) {
  const Tensor x = c.tensor(0);
  return {where(x > c.number("alpha", 1), x, 0)};
}

Tensors softsign_row(const Call& c) { return {c.tensor(0) / (abs(c.tensor(0)) + 1)}; }

template <Tensor (*f)(const Tensor&, int)>
Tensors along_axis(const Call& c) {
  const Tensor x = c.tensor(0);
  return {f(x, axis_of(c.integer("axis", -1), x.rank()))};
}

// Operands: x, ratio, training_mode.
Tensors dropout_row(const Call& c) {
  const Tensor x = c.tensor(0);
  const double ratio = c.number_at(1, 0.5).real;
  const bool has_training_form = c.has(2) && c.number_at(2, 0).integer != 0;
  return {has_training_form && c.is_training() && ratio > 0 ? dropout(x, ratio) : x};
}

template <Tensor (*f)(const Tensor&)>
Row one(const char* op, int since = 13) {
  return {.op = op, .since = since, .mean = [](const Call& c) { return Tensors{f(c.tensor(0))}; }};
}

}  // namespace

std::vector<Row> activation_rows() {
  const AttributeRule alpha{"alpha", Kind::number}, beta{"beta", Kind::number}, gamma{"gamma", Kind::number},
      axis{"axis", Kind::integer};
  return {
      one<relu>("Relu"),
      one<sigmoid>("Sigmoid"),
      one<tanh>("Tanh"),
      one<hardswish>("HardSwish", 14),
      one<mish>("Mish", 18),
      {.op = "Softplus", .mean = [](const Call& c) { return Tensors{softplus(c.tensor(0))}; }},
      {.op = "Softsign", .mean = softsign_row},
      {.op = "LeakyRelu",
       .attributes = {alpha},
       .mean = [](const Call& c) { return Tensors{leaky_relu(c.tensor(0), c.number("alpha", 0.01))}; }},
      {.op = "Elu",
       .attributes = {alpha},
       .mean = [](const Call& c) { return Tensors{elu(c.tensor(0), c.number("alpha", 1))}; }},
      {.op = "Gelu",
       .since = 20,
       .attributes = {{"approximate", Kind::text, "none|tanh"}},
       .mean = [](const Call& c) { return Tensors{gelu(c.tensor(0), c.text("approximate", "none"))}; }},
      {.op = "Selu", .attributes = {alpha, gamma}, .mean = selu_row},
      {.op = "Celu", .attributes = {alpha}, .mean = celu_row},
      {.op = "HardSigmoid", .attributes = {alpha, beta}, .mean = hard_sigmoid_row},
      {.op = "PRelu", .least = 2, .most = 2, .mean = prelu_row},
      {.op = "ThresholdedRelu", .attributes = {alpha}, .mean = thresholded_relu_row},
      {.op = "Softmax", .attributes = {axis}, .mean = along_axis<softmax>},
      {.op = "LogSoftmax", .attributes = {axis}, .mean = along_axis<log_softmax>},
      {.op = "Dropout", .most = 3, .attributes = {{"seed", Kind::integer}}, .numbers = {1, 2}, .mean = dropout_row},
  };
}

}  // namespace fusejit::onnx
