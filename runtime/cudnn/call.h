// ConvolutionCall: one convolution as cuDNN is asked for it, with what may be fused before and after. A plain struct:
// it is what the scheduler asks `supports` about, what a plan is built for, and (as text) part of the key of that plan.
//
// The order of the steps is fixed and is the one that cuDNN's precompiled engines know:
//   forward          y  = act((conv(prologue(x), w) − mean) · scale + side + bias);   sums: Σy, Σy²
//   input gradient   dz = mask(conv_input_gradient(dy, w) + side);          sums: Σdz; or Σdz, Σdz·(y − mean)
//   weight gradient  dw = conv_weight_gradient(prologue(x), dy)
#pragma once

#include <array>
#include <cstdint>
#include <string>

#include "fusejit/type.h"

namespace fusejit::runtime::cudnn {

enum class Direction : std::uint8_t { forward, input_gradient, weight_gradient };

enum class Activation : std::uint8_t {
  none,
  relu,
  relu6,
  leaky_relu,
  elu,
  sigmoid,
  tanh,
  gelu,
  gelu_tanh,
  silu,
  softplus
};
inline constexpr int kActivations = 11;
std::string_view name(Activation activation);

// x · scale[c] + shift[c], then relu: what is done to x on its way into the convolution.
enum class Prologue : std::uint8_t { none, affine, affine_relu };

// Where the gradient of a relu is let through.
enum class Mask : std::uint8_t {
  none,
  output,    // where the relu's stored output (or input) is > 0
  bits,      // where a stored bit is set
  recompute  // where (y − mean) · inverse_std · gamma + beta > 0
};

// What is summed over N, H and W beside the store of the result.
enum class Sums : std::uint8_t {
  none,
  statistics,         // forward: Σy and Σy² (GENSTATS)
  bias,               // input gradient: Σdz
  gradient,           // input gradient: Σdz and Σdz·(y − mean), two reductions
  batch_norm_weights  // input gradient: dgamma, dbeta and the coefficients of dx (BN_BWD_WEIGHTS)
};

struct ConvolutionCall {
  Direction direction = Direction::forward;
  DType dtype = DType::f32;  // of x, w, y, side and bias; sums and batch-norm vectors are f32, as is the arithmetic
  Layout layout = Layout::nhwc;
  Shape x;  // [N,C,H,W]
  Shape w;  // [K,C/groups,R,S]
  std::array<std::int64_t, 2> stride{1, 1};
  std::array<std::int64_t, 4> padding{};  // top, left, bottom, right
  std::array<std::int64_t, 2> dilation{1, 1};
  std::int64_t groups = 1;

  Prologue prologue = Prologue::none;
  bool centre = false;  // − output_mean[c], only with `scale`
  bool scale = false;   // · output_scale[c]; the vectors, a bias among them, are then f32
  bool side = false;
  bool bias = false;
  Activation activation = Activation::none;
  float slope = 0.01f;  // of leaky_relu
  Mask mask = Mask::none;
  Sums sums = Sums::none;

  // Shape of y, [N,K,P,Q].
  Shape y() const;
  // The type of the result: y, dx or dw.
  Type result() const;
  // "forward f16:nhwc x=[16,64,56,56] w=[64,64,3,3] stride=[1,1] padding=[1,1,1,1] dilation=[1,1] groups=1 bias relu"
  std::string str() const;
  // Throws UserError if shapes do not fit or steps do not belong to the direction.
  void check() const;
  friend bool operator==(const ConvolutionCall&, const ConvolutionCall&) = default;
};

// What may differ in the last bits. All off: results do not change from run to run and are those of f32 arithmetic.
struct Numerics {
  bool tf32 = false;              // f32 operands rounded to 10 bits, for tensor cores
  bool nondeterministic = false;  // sums by atomics
  bool winograd = false;          // and FFT: transformed domains, whose errors are larger
  friend bool operator==(const Numerics&, const Numerics&) = default;
};

// The tensors of a call; the value is the unique id by which cuDNN knows it, and by which `execute` is given its
// address.
enum class Role : std::int64_t {
  x = 1,
  w,
  y,  // or their gradients: the direction says which is the result
  scale,
  shift,  // prologue, dtype of the call
  side,
  bias,
  mask,      // dtype of the call, or bits
  pre_norm,  // y before batch norm, for Sums and Mask::recompute
  mean,
  inverse_std,
  gamma,
  beta,  // f32[channel]
  sum,
  second_sum,  // f32[channel]: Σ and Σ² or Σdz·(y − mean); dbeta and dgamma of batch_norm_weights
  coefficient_dy,
  coefficient_x,
  coefficient_one,  // of batch_norm_weights: dx = a·dz + b·y + c
  output_mean,
  output_scale  // f32[channel]
};
std::string_view name(Role role);
// In elements, by logical dim: what cuDNN is told of a tensor beside its shape.
std::array<std::int64_t, 4> strides_of(const Shape& shape, Layout layout);

}  // namespace fusejit::runtime::cudnn
