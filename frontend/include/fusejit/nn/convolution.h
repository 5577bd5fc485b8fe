// Convolution layers: Conv1d, Conv2d, ConvTranspose2d, and ConvBatchNorm2d, which saves memory in training.
#pragma once

#include <string>
#include <vector>

#include "fusejit/composed.h"
#include "fusejit/module.h"
#include "fusejit/ops.h"

namespace fusejit::nn {

struct Conv2dOptions {
  Pair stride = 1;
  Padding padding = 0;  // a number, {v, h}, {top, left, bottom, right} or "same"
  Pair dilation = 1;
  std::int64_t groups = 1;
  bool bias = true;
  // What the cells of the padding hold: 0 ("zeros"), the image mirrored at its edge ("reflect", less than its extent),
  // its edge again ("replicate"), or its other end ("circular", its extent at most).
  std::string padding_mode = "zeros";
};
// x: [N,in,H,W] -> [N,out,P,Q], as conv2d. Parameters: weight [out,in/groups,R,S], bias [out].
//   fj::nn::Conv2d conv(3, 8, 3, {.padding = "same", .padding_mode = "reflect"});
class Conv2d : public ModuleOf<Conv2d> {
 public:
  Conv2d(std::int64_t in_channels, std::int64_t out_channels, Pair kernel_size, Conv2dOptions options = {});
  Tensor forward(const Tensor& x) const override;
  Parameter weight() const { return weight_; }

 private:
  ConvOptions conv_;
  std::string padding_mode_;
  Parameter weight_;
  std::vector<Parameter> bias_;  // one or none
};

struct Conv1dOptions {
  std::int64_t stride = 1;
  Padding1d padding = 0;  // a number, {before, after} or "same"
  std::int64_t dilation = 1;
  std::int64_t groups = 1;
  bool bias = true;
  std::string padding_mode = "zeros";  // as Conv2d's
};
// x: [N,in,L] -> [N,out,P], as conv1d. Parameters: weight [out,in/groups,S], bias [out].
//   fj::nn::Conv1d conv(4, 8, 3, {.padding = 1});
//   fj::Tensor y = conv(fj::ones({2, 4, 10}));  // [2,8,10]
class Conv1d : public ModuleOf<Conv1d> {
 public:
  Conv1d(std::int64_t in_channels, std::int64_t out_channels, std::int64_t kernel_size, Conv1dOptions options = {});
  Tensor forward(const Tensor& x) const override;
  Parameter weight() const { return weight_; }

 private:
  fusejit::Conv1dOptions conv_;
  std::string padding_mode_;
  Parameter weight_;
  std::vector<Parameter> bias_;  // one or none
};

struct ConvTranspose2dOptions {
  Pair stride = 1;
  Padding padding = 0;
  Pair output_padding = 0;  // rows and columns more at the end, fewer than the stride
  std::int64_t groups = 1;
  bool bias = true;
  Pair dilation = 1;
};
// x: [N,in,H,W] -> [N,out,P,Q] with P = (H - 1)*stride - top - bottom + dilation*(R - 1) + 1 + output_padding, Q
// likewise, as conv_transpose2d. Parameters: weight [in,out/groups,R,S], bias [out].
//   fj::nn::ConvTranspose2d up(8, 4, 2, {.stride = 2});  // twice the size
class ConvTranspose2d : public ModuleOf<ConvTranspose2d> {
 public:
  ConvTranspose2d(std::int64_t in_channels, std::int64_t out_channels, Pair kernel_size,
                  ConvTranspose2dOptions options = {});
  Tensor forward(const Tensor& x) const override;
  Parameter weight() const { return weight_; }

 private:
  ConvOptions conv_;
  Pair output_padding_;
  Parameter weight_;
  std::vector<Parameter> bias_;  // one or none
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
  Tensor forward(const Tensor& x) const override;

 private:
  ConvOptions conv_;
  ConvBatchNorm2dOptions options_;
  Parameter weight_;
  std::vector<Parameter> affine_, running_;
};

}  // namespace fusejit::nn
