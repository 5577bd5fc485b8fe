// The layers; names, meaning and initialisation (uniform within 1/sqrt(fan_in), from the default generator) are
// PyTorch's. Parameters are f32 until Module::to. Input of another shape or dtype is a UserError, and so are sizes
// below one when a layer is made, and batch norm by the statistics of a batch that has one value a channel.
//
//   fj::nn::Sequential net(fj::nn::Conv2d(1, 8, 3, {.padding = "same"}), fj::nn::ReLU(), fj::nn::Flatten(),
//                          fj::nn::Linear(8 * 4 * 4, 10));
//   fj::Tensor logits = net(fj::ones({2, 1, 4, 4}));  // [2,10]
#pragma once

#include <memory>
#include <type_traits>
#include <vector>

#include "fusejit/module.h"
#include "fusejit/ops.h"

namespace fusejit::nn {

struct Conv2dOptions {
  Pair stride = 1;
  Padding padding = 0;  // a number, {v, h}, {top, left, bottom, right} or "same"
  Pair dilation = 1;
  std::int64_t groups = 1;
  bool bias = true;
};
// x: [N,in,H,W] -> [N,out,P,Q], as conv2d. Parameters: weight [out,in/groups,R,S], bias [out].
class Conv2d : public ModuleOf<Conv2d> {
 public:
  Conv2d(std::int64_t in_channels, std::int64_t out_channels, Pair kernel_size, Conv2dOptions options = {});
  Tensor forward(const Tensor& x) override;
  Parameter weight() const { return weight_; }

 private:
  ConvOptions conv_;
  Parameter weight_;
  std::vector<Parameter> bias_;  // one or none
};

// x: [...,in] -> [...,out], as linear. Parameters: weight [out,in], bias [out].
class Linear : public ModuleOf<Linear> {
 public:
  Linear(std::int64_t in_features, std::int64_t out_features, bool bias = true);
  Tensor forward(const Tensor& x) override;
  Parameter weight() const { return weight_; }

 private:
  Parameter weight_;
  std::vector<Parameter> bias_;
};

struct BatchNorm2dOptions {
  double eps = 1e-5;
  double momentum = 0.1;  // running = running*(1 - momentum) + batch*momentum
  bool affine = true;
  bool track_running_stats = true;  // false: the batch's own statistics in evaluation too
};
// x: [N,channels,H,W] -> the same: (x - mean)/sqrt(var + eps)*weight + bias per channel, over N, H, W. In training the
// batch's statistics normalise (variance by n) and update the running ones (variance by n - 1). Parameters: weight,
// bias; state: running_mean, running_var, each [channels].
class BatchNorm2d : public ModuleOf<BatchNorm2d> {
 public:
  explicit BatchNorm2d(std::int64_t channels, BatchNorm2dOptions options = {});
  Tensor forward(const Tensor& x) override;

 private:
  BatchNorm2dOptions options_;
  std::vector<Parameter> affine_;   // weight, bias, or none
  std::vector<Parameter> running_;  // mean, var, or none
};

struct ConvBatchNorm2dOptions {
  Pair stride = 1;
  Padding padding = 0;
  Pair dilation = 1;
  std::int64_t groups = 1;
  double eps = 1e-5;
  double momentum = 0.1;
  bool affine = true;
  bool track_running_stats = true;
  bool eps_outside = false;     // 1/(sqrt(v) + eps)
  bool unbiased = false;        // v divides by n - 1 when normalising
  bool save_only_input = true;  // false: the same values, ordinary memory use
};
// Convolution without bias and batch-norm as one layer that in training keeps only the convolution's input: the
// backward pass computes the convolution again. (An ordinary layer on a processor keeps the convolution's output alone,
// where another convolution computes the activation as it reads it: of several such layers the last saves memory.)
// After PyTorch's tutorial "Fusing Convolution and Batch Norm using Custom Function". x: [N,in,H,W] -> [N,out,P,Q].
// Parameters: weight, gamma, beta; state: running_mean, running_var. UserError for running statistics together with
// unbiased or eps_outside: they normalise by the batch's own only.
class ConvBatchNorm2d : public ModuleOf<ConvBatchNorm2d> {
 public:
  ConvBatchNorm2d(std::int64_t in_channels, std::int64_t out_channels, Pair kernel_size,
                  ConvBatchNorm2dOptions options = {});
  Tensor forward(const Tensor& x) override;

 private:
  ConvOptions conv_;
  ConvBatchNorm2dOptions options_;
  Parameter weight_;
  std::vector<Parameter> affine_, running_;
};

// Zeroes with probability p in training and scales the rest by 1/(1-p); identity in evaluation.
class Dropout : public ModuleOf<Dropout> {
 public:
  explicit Dropout(double p = 0.5);
  Tensor forward(const Tensor& x) override;

 private:
  double p_;
};

// The functions of ops.h as layers, for Sequential; x as there.
class ReLU : public ModuleOf<ReLU> {
 public:
  Tensor forward(const Tensor& x) override { return relu(x); }
};

class ReLU6 : public ModuleOf<ReLU6> {
 public:
  Tensor forward(const Tensor& x) override { return relu6(x); }
};

// [N,...] -> [N, product of the rest].
class Flatten : public ModuleOf<Flatten> {
 public:
  explicit Flatten(int start_dim = 1, int end_dim = -1) : start_dim_(start_dim), end_dim_(end_dim) {}
  Tensor forward(const Tensor& x) override { return flatten(x, start_dim_, end_dim_); }

 private:
  int start_dim_, end_dim_;
};

class MaxPool2d : public ModuleOf<MaxPool2d> {
 public:
  explicit MaxPool2d(Pair kernel_size, PoolOptions options = {}) : kernel_size_(kernel_size), options_(options) {}
  Tensor forward(const Tensor& x) override { return max_pool2d(x, kernel_size_, options_); }

 private:
  Pair kernel_size_;
  PoolOptions options_;
};

class AvgPool2d : public ModuleOf<AvgPool2d> {
 public:
  explicit AvgPool2d(Pair kernel_size, PoolOptions options = {}) : kernel_size_(kernel_size), options_(options) {}
  Tensor forward(const Tensor& x) override { return avg_pool2d(x, kernel_size_, options_); }

 private:
  Pair kernel_size_;
  PoolOptions options_;
};

class AdaptiveAvgPool2d : public ModuleOf<AdaptiveAvgPool2d> {
 public:
  explicit AdaptiveAvgPool2d(Pair output_size) : output_size_(output_size) {}
  Tensor forward(const Tensor& x) override { return adaptive_avg_pool2d(x, output_size_); }

 private:
  Pair output_size_;
};

class LogSoftmax : public ModuleOf<LogSoftmax> {
 public:
  explicit LogSoftmax(int dim = 1) : dim_(dim) {}
  Tensor forward(const Tensor& x) override { return log_softmax(x, dim_); }

 private:
  int dim_;
};

template <class M>
concept AnyModule = std::is_base_of_v<Module, std::remove_cvref_t<M>>;

// One after another. A module is named by its number: "0", "1", ..., or as push_back says.
//   fj::nn::Sequential head;
//   head.push_back("norm", fj::nn::BatchNorm2d(8)).push_back(fj::nn::ReLU()).push_back(fj::nn::Conv2d(8, 4, 1));
//   bool found = head.state_dict().contains("2.weight");  // and "norm.weight"
class Sequential : public ModuleOf<Sequential> {
 public:
  Sequential() = default;
  template <AnyModule... M>
  requires(sizeof...(M) > 1 ||
           !(std::is_same_v<std::remove_cvref_t<M>, Sequential> || ...)) explicit Sequential(M&&... modules) {
    (push_back(modules), ...);
  }
  // They name the same module, as handles do. UserError if there is one of that name.
  Sequential& push_back(const Module& module);
  Sequential& push_back(const std::string& name, const Module& module);
  Tensor forward(const Tensor& x) override;
  std::size_t size() const { return modules_.size(); }

 private:
  std::vector<std::shared_ptr<Module>> modules_;
};

}  // namespace fusejit::nn
