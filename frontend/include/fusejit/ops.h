// The operations on tensors; names and meaning are PyTorch's, exact contract in docs/ops.md. Every function records one
// value and returns at once; a shape or dtype that cannot be meant is a UserError on the caller's line.
//
// Operands of different kinds are converted as in PyTorch (bool -> int -> float); functions that need floats take
// integer tensors as f32. Numbers among the operands take the dtype of the tensor beside them. Host numbers other than
// 0, +-1, 1/2 and 2 are arguments of the trace: changing them compiles nothing.
//
//   fj::Tensor x = fj::tensor<float>({-1, 0, 2});
//   fj::Tensor y = fj::where(x > 0, x * 3, fj::exp(x) - 1);
//   std::cout << y.sum().item<float>();  // 5.36788
//
// Axes (`dim`) may be negative, counting from the end; one out of range or named twice is a UserError.
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

// Extents, or axes.
using Dims = std::vector<std::int64_t>;

// ---- element-wise ---------------------------------------------------------------------------------------------------
// Shapes broadcast by NumPy's rules: right-aligned, extents equal or one of them 1. The result has the promoted dtype
// of the operands. Functions of one real number (exp ... cos) give floats. Values at the edges - division by zero,
// NaN, integers that wrap - are those of docs/ops.md section 4; nothing traps.

Tensor add(const Tensor& a, const Tensor& b);
Tensor sub(const Tensor& a, const Tensor& b);
Tensor mul(const Tensor& a, const Tensor& b);
Tensor div(const Tensor& a, const Tensor& b);           // true division: integers become f32
Tensor floor_divide(const Tensor& a, const Tensor& b);  // towards minus infinity, as Python's //; integers by 0 give 0
Tensor floor_divide(const Tensor& a, Number b);
Tensor floor_divide(Number a, const Tensor& b);
Tensor remainder(const Tensor& a, const Tensor& b);  // sign of b
Tensor remainder(const Tensor& a, Number b);
Tensor remainder(Number a, const Tensor& b);
Tensor fmod(const Tensor& a, const Tensor& b);  // sign of a
Tensor fmod(const Tensor& a, Number b);
Tensor fmod(Number a, const Tensor& b);
Tensor pow(const Tensor& a, const Tensor& b);
Tensor pow(const Tensor& a, Number b);
Tensor pow(Number a, const Tensor& b);
Tensor maximum(const Tensor& a, const Tensor& b);
Tensor maximum(const Tensor& a, Number b);
Tensor maximum(Number a, const Tensor& b);
Tensor minimum(const Tensor& a, const Tensor& b);
Tensor minimum(const Tensor& a, Number b);
Tensor minimum(Number a, const Tensor& b);
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
Tensor operator%(const Tensor& a, const Tensor& b);  // remainder()
Tensor operator%(const Tensor& a, Number b);
Tensor operator%(Number a, const Tensor& b);
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
Tensor sign(const Tensor& x);  // -1, 0 or 1; NaN stays
Tensor square(const Tensor& x);
Tensor reciprocal(const Tensor& x);  // 1/x
Tensor sqrt(const Tensor& x);
Tensor rsqrt(const Tensor& x);  // 1/sqrt(x)
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
// min(max(x, min), max) with x's dtype; NaN stays. Integer tensors: whole numbers or infinities, else UserError.
Tensor clamp(const Tensor& x, Number min, Number max = std::numeric_limits<double>::infinity());

// Comparisons and logical_* give bool tensors; for logical_* whatever is not zero is true. bitwise_* and the operators
// & | ^ ~ that stand for them: int and bool only, where they are the logical ones. && || ! are refused (tensor.h).
//
//   fj::Tensor v = fj::tensor<float>({-1, 0, 2});
//   ((v == 0) | (v > 1)).to_vector<bool>();  // false, true, true
Tensor eq(const Tensor& a, const Tensor& b);
Tensor eq(const Tensor& a, Number b);
Tensor ne(const Tensor& a, const Tensor& b);
Tensor ne(const Tensor& a, Number b);
Tensor operator==(const Tensor& a, const Tensor& b);
Tensor operator==(const Tensor& a, Number b);
Tensor operator==(Number a, const Tensor& b);
Tensor operator!=(const Tensor& a, const Tensor& b);
Tensor operator!=(const Tensor& a, Number b);
Tensor operator!=(Number a, const Tensor& b);
Tensor operator<(const Tensor& a, const Tensor& b);
Tensor operator<(const Tensor& a, Number b);
Tensor operator<(Number a, const Tensor& b);
Tensor operator<=(const Tensor& a, const Tensor& b);
Tensor operator<=(const Tensor& a, Number b);
Tensor operator<=(Number a, const Tensor& b);
Tensor operator>(const Tensor& a, const Tensor& b);
Tensor operator>(const Tensor& a, Number b);
Tensor operator>(Number a, const Tensor& b);
Tensor operator>=(const Tensor& a, const Tensor& b);
Tensor operator>=(const Tensor& a, Number b);
Tensor operator>=(Number a, const Tensor& b);
Tensor logical_and(const Tensor& a, const Tensor& b);
Tensor logical_or(const Tensor& a, const Tensor& b);
Tensor logical_xor(const Tensor& a, const Tensor& b);
Tensor logical_not(const Tensor& a);
Tensor bitwise_and(const Tensor& a, const Tensor& b);
Tensor bitwise_or(const Tensor& a, const Tensor& b);
Tensor bitwise_xor(const Tensor& a, const Tensor& b);
Tensor bitwise_not(const Tensor& a);
Tensor operator&(const Tensor& a, const Tensor& b);
Tensor operator&(const Tensor& a, Number b);
Tensor operator&(Number a, const Tensor& b);
Tensor operator|(const Tensor& a, const Tensor& b);
Tensor operator|(const Tensor& a, Number b);
Tensor operator|(Number a, const Tensor& b);
Tensor operator^(const Tensor& a, const Tensor& b);
Tensor operator^(const Tensor& a, Number b);
Tensor operator^(Number a, const Tensor& b);
Tensor operator~(const Tensor& a);
Tensor isnan(const Tensor& x);
Tensor isinf(const Tensor& x);
Tensor isfinite(const Tensor& x);
// a where the condition holds, else b. condition: bool; shapes broadcast.
Tensor where(const Tensor& condition, const Tensor& a, const Tensor& b);
Tensor where(const Tensor& condition, const Tensor& a, Number b);
Tensor where(const Tensor& condition, Number a, const Tensor& b);

// ---- activations ----------------------------------------------------------------------------------------------------
// x of any shape -> the same shape, float (relu also integers). Formulas: docs/ops.md section 5, after PyTorch.

Tensor relu(const Tensor& x);                                      // max(x, 0)
Tensor relu6(const Tensor& x);                                     // min(max(x, 0), 6)
Tensor leaky_relu(const Tensor& x, double negative_slope = 0.01);  // x, below 0 x*negative_slope
Tensor elu(const Tensor& x, double alpha = 1);                     // x, below 0 alpha*(e^x - 1)
Tensor selu(const Tensor& x);                                      // lambda*elu(x, alpha), the constants of its paper
// x*Phi(x): "none" with the error function, "tanh" with the usual approximation of it; another word is a UserError.
Tensor gelu(const Tensor& x, const std::string& approximate = "none");
Tensor silu(const Tensor& x);  // x*sigmoid(x)
Tensor mish(const Tensor& x);  // x*tanh(softplus(x))
// log(1 + e^(beta*x))/beta; x itself where beta*x > threshold.
Tensor softplus(const Tensor& x, double beta = 1, double threshold = 20);
Tensor hardsigmoid(const Tensor& x);  // relu6(x + 3)/6
Tensor hardswish(const Tensor& x);    // x*relu6(x + 3)/6
// e^x over the sum of e^x along `dim`, and its logarithm; neither overflows.
Tensor softmax(const Tensor& x, int dim);
Tensor log_softmax(const Tensor& x, int dim);
// Zeroes each element with probability p and scales the rest by 1/(1-p); draws from the default generator. Float
// tensors; UserError unless 0 <= p <= 1.
Tensor dropout(const Tensor& x, double p = 0.5);

// ---- reductions -----------------------------------------------------------------------------------------------------
// Over the axes in `dim`; empty: over everything. Those axes vanish, or stay with extent 1 if keepdim. Floats are
// accumulated in f32 (f64 for f64) in a fixed order and rounded once.

// Integers and bools are summed and multiplied as i64; floats keep their dtype. Over nothing: 0, NaN (mean), 1 (prod).
Tensor sum(const Tensor& x, const Dims& dim = {}, bool keepdim = false);
Tensor mean(const Tensor& x, const Dims& dim = {}, bool keepdim = false);
Tensor prod(const Tensor& x, const Dims& dim = {}, bool keepdim = false);
// x's dtype; a NaN wins. UserError over nothing.
Tensor amax(const Tensor& x, const Dims& dim = {}, bool keepdim = false);
Tensor amin(const Tensor& x, const Dims& dim = {}, bool keepdim = false);
// bool: whatever is not zero is true.
Tensor any(const Tensor& x, const Dims& dim = {}, bool keepdim = false);
Tensor all(const Tensor& x, const Dims& dim = {}, bool keepdim = false);
// Sum of (x - mean)^2 over n - correction, float; NaN where n <= correction.
Tensor var(const Tensor& x, const Dims& dim = {}, std::int64_t correction = 1, bool keepdim = false);
// i64: the place of the first extreme along `dim`; the first NaN is one. UserError over nothing.
Tensor argmax(const Tensor& x, int dim, bool keepdim = false);
Tensor argmin(const Tensor& x, int dim, bool keepdim = false);

// ---- views ----------------------------------------------------------------------------------------------------------
// Any dtype; elements are moved, never changed.

// The same elements in row-major order; one extent may be -1 and is worked out.
Tensor reshape(const Tensor& x, const Dims& shape);
Tensor flatten(const Tensor& x, int start_dim = 0, int end_dim = -1);  // those axes as one
Tensor permute(const Tensor& x, const Dims& dims);                     // axis k of the result is axis dims[k] of x
Tensor transpose(const Tensor& x, int a, int b);
Tensor squeeze(const Tensor& x, const Dims& dim = {});  // axes of extent 1 (else UserError) vanish; empty: all such
Tensor unsqueeze(const Tensor& x, int dim);             // a new axis of extent 1, there
Tensor expand(const Tensor& x, const Dims& shape);      // extents 1 repeat, new axes on the left; -1 keeps an extent
// Elements start, start + step, ... below stop along `dim`; bounds are clamped and may be negative.
Tensor slice(const Tensor& x, int dim, std::int64_t start, std::int64_t stop = std::numeric_limits<std::int64_t>::max(),
             std::int64_t step = 1);
// low[i] and high[i] cells of `value` before and after axis i, one number an axis, none negative.
Tensor pad(const Tensor& x, const Dims& low, const Dims& high, Number value = 0);
// One after another along `dim`: 1 to 64 tensors whose other extents agree, in their common dtype (bool -> int ->
// float).
Tensor concat(const std::vector<Tensor>& tensors, int dim = 0);
Tensor flip(const Tensor& x, const Dims& dims);
// out[.., i, ..] = x[.., index[.., i, ..], ..] along `dim`. index: ints of x's rank, no larger than x elsewhere.
// A place outside gives NaN, in integer tensors 0.
Tensor gather(const Tensor& x, int dim, const Tensor& index);
// index: [...] ints -> [..., num_classes], 1 where the class is; a class outside [0, num_classes) gives zeros.
Tensor one_hot(const Tensor& index, std::int64_t num_classes, DType dtype = i64);

// ---- convolutions, products, pools ----------------------------------------------------------------------------------

struct ConvOptions {
  Pair stride = 1;
  Padding padding = 0;
  Pair dilation = 1;
  std::int64_t groups = 1;
};
// x: [N,C,H,W], w: [K,C/groups,R,S] -> [N,K,P,Q] with P = floor((H + top + bottom - dilation*(R - 1) - 1)/stride) + 1,
// Q likewise; float, one dtype. A cross-correlation, as in PyTorch: the kernel is not turned round.
Tensor conv2d(const Tensor& x, const Tensor& w, const ConvOptions& options = {});
// bias: [K] or empty.
Tensor conv2d(const Tensor& x, const Tensor& w, const Tensor& bias, const ConvOptions& options = {});
// The transpose of conv2d. dy: [N,K,P,Q], w: [K,C/groups,R,S] -> [N,C,H,W] with the smallest H, W that fit, plus
// output_padding.
Tensor conv_transpose2d(const Tensor& dy, const Tensor& w, const ConvOptions& options = {}, Pair output_padding = 0);
Tensor bias_add(const Tensor& x, const Tensor& bias);  // x: [N,C,...], bias: [C], along axis 1
Tensor matmul(const Tensor& a, const Tensor& b);       // [...,M,K] x [...,K,N] -> [...,M,N]; leading axes broadcast
// x*w^T + bias. x: [...,I], w: [O,I], bias: [O] or empty -> [...,O].
Tensor linear(const Tensor& x, const Tensor& w, const Tensor& bias = {});

struct PoolOptions {
  std::optional<Pair> stride = {};  // kernel_size if left out
  Padding padding = 0;
  Pair dilation = 1;              // max only
  bool ceil_mode = false;         // the last window may end beyond the padding
  bool count_include_pad = true;  // average only
};
// x: [N,C,H,W] float -> [N,C,P,Q], P and Q as for conv2d. Cells outside count as -infinity (max) or 0 (average). With
// ceil_mode P and Q are rounded up, but for a window that would begin behind the image; cells beyond the padding count
// in no average.
//
//   fj::max_pool2d(fj::ones({1, 1, 6, 7}), 3, {.stride = 2, .ceil_mode = true}).shape();  // [1,1,3,3]
Tensor max_pool2d(const Tensor& x, Pair kernel_size, const PoolOptions& options = {});
Tensor avg_pool2d(const Tensor& x, Pair kernel_size, const PoolOptions& options = {});
// x: [N,C,H,W] float -> [N,C,P,Q] with [P,Q] = output_size. Row i of the average: rows floor(i*H/P) up to
// ceil((i + 1)*H/P), that one left out; of the nearest: row floor(i*H/P); bilinear: as PyTorch's interpolate.
Tensor adaptive_avg_pool2d(const Tensor& x, Pair output_size);
Tensor upsample_nearest2d(const Tensor& x, Pair output_size);
Tensor upsample_bilinear2d(const Tensor& x, Pair output_size, bool align_corners = false);

// ---- normalisation --------------------------------------------------------------------------------------------------
// (x - mean)/sqrt(var + eps)*weight + bias, x: [N,C,...] float -> the same type. Empty weight and bias tensors mean 1
// and 0. The variance divides by n, in two passes, and 16-bit floats are computed in f32.

// With given statistics (inference). mean, var, weight, bias: [C].
Tensor batch_norm(const Tensor& x, const Tensor& mean, const Tensor& var, const Tensor& weight = {},
                  const Tensor& bias = {}, double eps = 1e-5);
struct BatchNormOptions {
  double eps = 1e-5;
  std::int64_t correction = 0;  // the variance divides by n - correction
  bool eps_outside = false;     // 1/(sqrt(v) + eps) in place of 1/sqrt(v + eps)
};
// With the statistics of x itself, two values or more a channel, over all other axes; its gradient flows through them.
Tensor batch_norm_train(const Tensor& x, const Tensor& weight = {}, const Tensor& bias = {},
                        const BatchNormOptions& options = {});
// Over the last axes, whose extents are normalized_shape; weight and bias have that shape.
Tensor layer_norm(const Tensor& x, const Dims& normalized_shape, const Tensor& weight = {}, const Tensor& bias = {},
                  double eps = 1e-5);
// Per image and group of C/num_groups channels; weight, bias: [C].
Tensor group_norm(const Tensor& x, std::int64_t num_groups, const Tensor& weight = {}, const Tensor& bias = {},
                  double eps = 1e-5);
// Per image and channel; weight, bias: [C].
Tensor instance_norm(const Tensor& x, const Tensor& weight = {}, const Tensor& bias = {}, double eps = 1e-5);

// ---- losses ---------------------------------------------------------------------------------------------------------
// reduction: "mean" and "sum" give one number [], "none" the unreduced shape; another word is a UserError. x's dtype.

struct ClassLossOptions {
  std::string reduction = "mean";
  std::int64_t ignore_index = -100;  // such targets count as 0, and not in the mean
  double label_smoothing = 0;        // cross_entropy only: this share of each target goes to all classes alike
  Tensor weight = {};                // [C], of each class: counts its losses so often, and in the mean
};
// -logp[n, target[n, ...], ...]. logp: [N,C,...] log-probabilities, target: [N,...] ints, classes 0 .. C - 1; any
// other target that is not ignore_index makes the loss NaN.
Tensor nll_loss(const Tensor& logp, const Tensor& target, const ClassLossOptions& options = {});
// nll_loss(log_softmax(x, 1), target). x: [N,C,...]. Or target: float, of x's shape, the probability of each class
// (one- hot labels, mixed ones): -sum(target*log_softmax(x, 1), {1}), of which "mean" is the mean; without
// ignore_index.
//
//   fj::Tensor soft = fj::tensor<float>({0.5, 0.5}).reshape({1, 2});
//   fj::cross_entropy(fj::zeros({1, 2}), soft).item<float>();  // 0.693147
Tensor cross_entropy(const Tensor& x, const Tensor& target, const ClassLossOptions& options = {});
// Shapes of x and target broadcast; both may be differentiated. With d = |x - target|: d^2; d; d^2/(2*beta), from beta
// on d - beta/2; and the cross entropy of sigmoid(x) with targets in [0, 1].
Tensor mse_loss(const Tensor& x, const Tensor& target, const std::string& reduction = "mean");
Tensor l1_loss(const Tensor& x, const Tensor& target, const std::string& reduction = "mean");
Tensor smooth_l1_loss(const Tensor& x, const Tensor& target, const std::string& reduction = "mean", double beta = 1);
Tensor binary_cross_entropy_with_logits(const Tensor& x, const Tensor& target, const std::string& reduction = "mean");

}  // namespace fusejit
