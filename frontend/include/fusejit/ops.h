// The operations on tensors; names and meaning are PyTorch's, exact contract in docs/ops.md. Every function records one
// value and returns at once; a shape or dtype that cannot be meant is a UserError on the caller's line.
//
// Operands of different kinds are converted as in PyTorch (bool -> int -> float); functions that need floats take
// integer tensors as f32. Numbers among the operands take the dtype of the tensor beside them. Host numbers other than
// 0, +-1, 1/2 and 2 are arguments of the trace: changing them compiles nothing.
#pragma once

#include <array>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "fusejit/tensor.h"

namespace fusejit {

// A window parameter: one number for both axes, or {vertical, horizontal}.
struct Pair {
  std::int64_t vertical, horizontal;
  Pair(std::int64_t both) : vertical(both), horizontal(both) {}
  Pair(int both) : vertical(both), horizontal(both) {}
  Pair(std::int64_t v, std::int64_t h) : vertical(v), horizontal(h) {}
};

// Padding: one number, {vertical, horizontal}, {top, left, bottom, right}, or "same" (stride 1: the output has the
// input's size; the odd cell goes to the end, as in PyTorch).
struct Padding {
  std::array<std::int64_t, 4> cells{};  // top, left, bottom, right
  bool same = false;
  Padding(std::int64_t all) : cells{all, all, all, all} {}
  Padding(int all) : Padding(static_cast<std::int64_t>(all)) {}
  Padding(std::int64_t v, std::int64_t h) : cells{v, h, v, h} {}
  Padding(std::int64_t top, std::int64_t left, std::int64_t bottom, std::int64_t right)
      : cells{top, left, bottom, right} {}
  Padding(const char* word);  // "same" or "valid"; else UserError
};

using Dims = std::vector<std::int64_t>;

// ---- element-wise ---------------------------------------------------------------------------------------------------

Tensor add(const Tensor& a, const Tensor& b);
Tensor sub(const Tensor& a, const Tensor& b);
Tensor mul(const Tensor& a, const Tensor& b);
Tensor div(const Tensor& a, const Tensor& b);  // true division: integers become f32
Tensor floor_divide(const Tensor& a, const Tensor& b);
Tensor remainder(const Tensor& a, const Tensor& b);  // sign of b
Tensor fmod(const Tensor& a, const Tensor& b);       // sign of a
Tensor pow(const Tensor& a, const Tensor& b);
Tensor pow(const Tensor& a, Number b);
Tensor maximum(const Tensor& a, const Tensor& b);
Tensor maximum(const Tensor& a, Number b);
Tensor minimum(const Tensor& a, const Tensor& b);
Tensor minimum(const Tensor& a, Number b);
Tensor operator+(const Tensor& a, const Tensor& b);
Tensor operator+(const Tensor& a, Number b);
Tensor operator+(Number a, const Tensor& b);
Tensor operator-(const Tensor& a, const Tensor& b);
Tensor operator-(const Tensor& a, Number b);
Tensor operator-(Number a, const Tensor& b);
Tensor operator*(const Tensor& a, const Tensor& b);
Tensor operator*(const Tensor& a, Number b);
Tensor operator*(Number a, const Tensor& b);
Tensor operator/(const Tensor& a, const Tensor& b);
Tensor operator/(const Tensor& a, Number b);
Tensor operator/(Number a, const Tensor& b);
Tensor operator-(const Tensor& x);
// A new value under the same name; other handles of the old value keep it.
template <class T>
Tensor& operator+=(Tensor& a, const T& b) {
  return a = a + b;
}
template <class T>
Tensor& operator-=(Tensor& a, const T& b) {
  return a = a - b;
}
template <class T>
Tensor& operator*=(Tensor& a, const T& b) {
  return a = a * b;
}
template <class T>
Tensor& operator/=(Tensor& a, const T& b) {
  return a = a / b;
}

Tensor abs(const Tensor& x);
Tensor sign(const Tensor& x);
Tensor square(const Tensor& x);
Tensor reciprocal(const Tensor& x);
Tensor sqrt(const Tensor& x);
Tensor rsqrt(const Tensor& x);
Tensor exp(const Tensor& x);
Tensor exp2(const Tensor& x);
Tensor expm1(const Tensor& x);
Tensor log(const Tensor& x);
Tensor log2(const Tensor& x);
Tensor log10(const Tensor& x);
Tensor log1p(const Tensor& x);
Tensor tanh(const Tensor& x);
Tensor sigmoid(const Tensor& x);
Tensor erf(const Tensor& x);
Tensor erfc(const Tensor& x);
Tensor sin(const Tensor& x);
Tensor cos(const Tensor& x);
Tensor floor(const Tensor& x);
Tensor ceil(const Tensor& x);
Tensor trunc(const Tensor& x);
Tensor round(const Tensor& x);  // half to even
Tensor clamp(const Tensor& x, double min, double max = std::numeric_limits<double>::infinity());

// Comparisons give bool tensors.
Tensor eq(const Tensor& a, const Tensor& b);
Tensor ne(const Tensor& a, const Tensor& b);
Tensor operator<(const Tensor& a, const Tensor& b);
Tensor operator<(const Tensor& a, Number b);
Tensor operator<=(const Tensor& a, const Tensor& b);
Tensor operator<=(const Tensor& a, Number b);
Tensor operator>(const Tensor& a, const Tensor& b);
Tensor operator>(const Tensor& a, Number b);
Tensor operator>=(const Tensor& a, const Tensor& b);
Tensor operator>=(const Tensor& a, Number b);
Tensor logical_and(const Tensor& a, const Tensor& b);
Tensor logical_or(const Tensor& a, const Tensor& b);
Tensor logical_xor(const Tensor& a, const Tensor& b);
Tensor logical_not(const Tensor& a);
Tensor bitwise_and(const Tensor& a, const Tensor& b);
Tensor bitwise_or(const Tensor& a, const Tensor& b);
Tensor bitwise_xor(const Tensor& a, const Tensor& b);
Tensor bitwise_not(const Tensor& a);
Tensor isnan(const Tensor& x);
Tensor isinf(const Tensor& x);
Tensor isfinite(const Tensor& x);
// a where the condition holds, else b. condition: bool; shapes broadcast.
Tensor where(const Tensor& condition, const Tensor& a, const Tensor& b);
Tensor where(const Tensor& condition, const Tensor& a, Number b);
Tensor where(const Tensor& condition, Number a, const Tensor& b);

// ---- activations ----------------------------------------------------------------------------------------------------

Tensor relu(const Tensor& x);
Tensor relu6(const Tensor& x);
Tensor leaky_relu(const Tensor& x, double negative_slope = 0.01);
Tensor elu(const Tensor& x, double alpha = 1);
Tensor selu(const Tensor& x);
Tensor gelu(const Tensor& x, const std::string& approximate = "none");
Tensor silu(const Tensor& x);
Tensor mish(const Tensor& x);
Tensor softplus(const Tensor& x, double beta = 1, double threshold = 20);
Tensor hardsigmoid(const Tensor& x);
Tensor hardswish(const Tensor& x);
Tensor softmax(const Tensor& x, int dim);
Tensor log_softmax(const Tensor& x, int dim);
// Zeroes each element with probability p and scales the rest by 1/(1-p); draws from the default generator.
Tensor dropout(const Tensor& x, double p = 0.5);

// ---- reductions -----------------------------------------------------------------------------------------------------
// `dim` empty: over everything.

Tensor sum(const Tensor& x, const Dims& dim = {}, bool keepdim = false);
Tensor mean(const Tensor& x, const Dims& dim = {}, bool keepdim = false);
Tensor prod(const Tensor& x, const Dims& dim = {}, bool keepdim = false);
Tensor amax(const Tensor& x, const Dims& dim = {}, bool keepdim = false);
Tensor amin(const Tensor& x, const Dims& dim = {}, bool keepdim = false);
Tensor any(const Tensor& x, const Dims& dim = {}, bool keepdim = false);
Tensor all(const Tensor& x, const Dims& dim = {}, bool keepdim = false);
Tensor var(const Tensor& x, const Dims& dim = {}, std::int64_t correction = 1, bool keepdim = false);
Tensor argmax(const Tensor& x, int dim, bool keepdim = false);
Tensor argmin(const Tensor& x, int dim, bool keepdim = false);

// ---- views ----------------------------------------------------------------------------------------------------------

Tensor reshape(const Tensor& x, const Dims& shape);  // one -1 is worked out
Tensor flatten(const Tensor& x, int start_dim = 0, int end_dim = -1);
Tensor permute(const Tensor& x, const Dims& dims);
Tensor transpose(const Tensor& x, int a, int b);
Tensor squeeze(const Tensor& x, const Dims& dim = {});
Tensor unsqueeze(const Tensor& x, int dim);
Tensor expand(const Tensor& x, const Dims& shape);  // -1 keeps an extent
// Elements start, start + step, ... below stop along `dim`; bounds are clamped and may be negative.
Tensor slice(const Tensor& x, int dim, std::int64_t start, std::int64_t stop = std::numeric_limits<std::int64_t>::max(),
             std::int64_t step = 1);
// low[i] and high[i] cells of `value` before and after axis i.
Tensor pad(const Tensor& x, const Dims& low, const Dims& high, double value = 0);
Tensor concat(const std::vector<Tensor>& tensors, int dim = 0);
Tensor flip(const Tensor& x, const Dims& dims);
Tensor gather(const Tensor& x, int dim, const Tensor& index);
Tensor one_hot(const Tensor& index, std::int64_t num_classes, DType dtype = i64);

// ---- convolutions, products, pools ----------------------------------------------------------------------------------

struct ConvOptions {
  Pair stride = 1;
  Padding padding = 0;
  Pair dilation = 1;
  std::int64_t groups = 1;
};
// x: [N,C,H,W], w: [K,C/groups,R,S] -> [N,K,P,Q]; float, one dtype.
Tensor conv2d(const Tensor& x, const Tensor& w, const ConvOptions& options = {});
// bias: [K] or empty.
Tensor conv2d(const Tensor& x, const Tensor& w, const Tensor& bias, const ConvOptions& options = {});
// The transpose of conv2d. dy: [N,K,P,Q], w: [K,C/groups,R,S] -> [N,C,H,W] with the smallest H, W that fit, plus
// output_padding.
Tensor conv_transpose2d(const Tensor& dy, const Tensor& w, const ConvOptions& options = {}, Pair output_padding = 0);
Tensor bias_add(const Tensor& x, const Tensor& bias);  // x: [N,C,...], bias: [C]
Tensor matmul(const Tensor& a, const Tensor& b);       // [...,M,K] x [...,K,N]
// x: [...,I], w: [O,I], bias: [O] or empty -> [...,O]
Tensor linear(const Tensor& x, const Tensor& w, const Tensor& bias = {});

struct PoolOptions {
  std::optional<Pair> stride = {};  // kernel_size if left out
  Padding padding = 0;
  Pair dilation = 1;              // max only
  bool count_include_pad = true;  // average only
};
Tensor max_pool2d(const Tensor& x, Pair kernel_size, const PoolOptions& options = {});
Tensor avg_pool2d(const Tensor& x, Pair kernel_size, const PoolOptions& options = {});
Tensor adaptive_avg_pool2d(const Tensor& x, Pair output_size);
Tensor upsample_nearest2d(const Tensor& x, Pair output_size);
Tensor upsample_bilinear2d(const Tensor& x, Pair output_size, bool align_corners = false);

// ---- normalisation --------------------------------------------------------------------------------------------------
// Empty weight and bias tensors mean 1 and 0.

Tensor batch_norm(const Tensor& x, const Tensor& mean, const Tensor& var, const Tensor& weight = {},
                  const Tensor& bias = {}, double eps = 1e-5);
struct BatchNormOptions {
  double eps = 1e-5;
  std::int64_t correction = 0;
  bool eps_outside = false;  // 1/(sqrt(v) + eps) in place of 1/sqrt(v + eps)
};
Tensor batch_norm_train(const Tensor& x, const Tensor& weight = {}, const Tensor& bias = {},
                        const BatchNormOptions& options = {});
Tensor layer_norm(const Tensor& x, const Dims& normalized_shape, const Tensor& weight = {}, const Tensor& bias = {},
                  double eps = 1e-5);
Tensor group_norm(const Tensor& x, std::int64_t num_groups, const Tensor& weight = {}, const Tensor& bias = {},
                  double eps = 1e-5);
Tensor instance_norm(const Tensor& x, const Tensor& weight = {}, const Tensor& bias = {}, double eps = 1e-5);

// ---- losses ---------------------------------------------------------------------------------------------------------
// reduction: "mean", "sum" or "none".

struct ClassLossOptions {
  std::string reduction = "mean";
  std::int64_t ignore_index = -100;
  double label_smoothing = 0;  // cross_entropy only
};
// logp: [N,C,...] log-probabilities, target: [N,...] i32 or i64.
Tensor nll_loss(const Tensor& logp, const Tensor& target, const ClassLossOptions& options = {});
Tensor cross_entropy(const Tensor& x, const Tensor& target, const ClassLossOptions& options = {});
Tensor mse_loss(const Tensor& x, const Tensor& target, const std::string& reduction = "mean");
Tensor l1_loss(const Tensor& x, const Tensor& target, const std::string& reduction = "mean");
Tensor smooth_l1_loss(const Tensor& x, const Tensor& target, const std::string& reduction = "mean", double beta = 1);
Tensor binary_cross_entropy_with_logits(const Tensor& x, const Tensor& target, const std::string& reduction = "mean");

}  // namespace fusejit
