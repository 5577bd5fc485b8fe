// Activations: the functions of ops.h as layers, for Sequential. x: of any shape -> the same, as there.
#pragma once

#include <string>
#include <utility>

#include "fusejit/module.h"
#include "fusejit/ops.h"

namespace fusejit::nn {

// relu() as a layer.
class ReLU : public ModuleOf<ReLU> {
 public:
  Tensor forward(const Tensor& x) const override { return relu(x); }
};

// relu6() as a layer.
class ReLU6 : public ModuleOf<ReLU6> {
 public:
  Tensor forward(const Tensor& x) const override { return relu6(x); }
};

// leaky_relu() as a layer.
class LeakyReLU : public ModuleOf<LeakyReLU> {
 public:
  explicit LeakyReLU(double negative_slope = 0.01) : negative_slope_(negative_slope) {}
  Tensor forward(const Tensor& x) const override { return leaky_relu(x, negative_slope_); }

 private:
  double negative_slope_;
};

// x, below 0 x*weight. Parameter: weight [num_parameters], `init` at first; one for all elements, or one for each
// channel (axis 1 of x, whose rank is two at least then).
class PReLU : public ModuleOf<PReLU> {
 public:
  explicit PReLU(std::int64_t num_parameters = 1, double init = 0.25);
  Tensor forward(const Tensor& x) const override;
  Parameter weight() const { return weight_; }

 private:
  Parameter weight_;
};

// elu() as a layer.
class ELU : public ModuleOf<ELU> {
 public:
  explicit ELU(double alpha = 1) : alpha_(alpha) {}
  Tensor forward(const Tensor& x) const override { return elu(x, alpha_); }

 private:
  double alpha_;
};

// selu() as a layer.
class SELU : public ModuleOf<SELU> {
 public:
  Tensor forward(const Tensor& x) const override { return selu(x); }
};

// gelu() as a layer.
class GELU : public ModuleOf<GELU> {
 public:
  explicit GELU(std::string approximate = "none") : approximate_(std::move(approximate)) {}
  Tensor forward(const Tensor& x) const override { return gelu(x, approximate_); }

 private:
  std::string approximate_;
};

// silu() as a layer.
class SiLU : public ModuleOf<SiLU> {
 public:
  Tensor forward(const Tensor& x) const override { return silu(x); }
};

// mish() as a layer.
class Mish : public ModuleOf<Mish> {
 public:
  Tensor forward(const Tensor& x) const override { return mish(x); }
};

// softplus() as a layer.
class Softplus : public ModuleOf<Softplus> {
 public:
  explicit Softplus(double beta = 1, double threshold = 20) : beta_(beta), threshold_(threshold) {}
  Tensor forward(const Tensor& x) const override { return softplus(x, beta_, threshold_); }

 private:
  double beta_, threshold_;
};

// sigmoid() as a layer.
class Sigmoid : public ModuleOf<Sigmoid> {
 public:
  Tensor forward(const Tensor& x) const override { return sigmoid(x); }
};

// hardsigmoid() as a layer.
class Hardsigmoid : public ModuleOf<Hardsigmoid> {
 public:
  Tensor forward(const Tensor& x) const override { return hardsigmoid(x); }
};

// hardswish() as a layer.
class Hardswish : public ModuleOf<Hardswish> {
 public:
  Tensor forward(const Tensor& x) const override { return hardswish(x); }
};

// tanh() as a layer.
class Tanh : public ModuleOf<Tanh> {
 public:
  Tensor forward(const Tensor& x) const override { return tanh(x); }
};

// softmax() along one axis: of images the channels, where PyTorch asks for it to be said.
class Softmax : public ModuleOf<Softmax> {
 public:
  explicit Softmax(int dim = 1) : dim_(dim) {}
  Tensor forward(const Tensor& x) const override { return softmax(x, dim_); }

 private:
  int dim_;
};

// log_softmax(), likewise.
class LogSoftmax : public ModuleOf<LogSoftmax> {
 public:
  explicit LogSoftmax(int dim = 1) : dim_(dim) {}
  Tensor forward(const Tensor& x) const override { return log_softmax(x, dim_); }

 private:
  int dim_;
};

}  // namespace fusejit::nn
