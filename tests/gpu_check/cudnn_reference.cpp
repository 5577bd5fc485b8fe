// What calls of cuDNN mean, in f64 and in the plainest way.
#include <algorithm>
#include <cmath>
#include <random>

#include "ir/base/check.h"
#include "tests/gpu_check/cudnn_run.h"

namespace fusejit::gpu_check {
namespace {

using cudnn::Activation;
using cudnn::ConvolutionCall;
using cudnn::Direction;
using cudnn::Mask;
using cudnn::Prologue;
using cudnn::Role;
using cudnn::Sums;
using Values = std::vector<double>;

double rounded(double value, DType dtype) { return ir::cast(ir::Scalar::of(value), dtype).as_double(); }

// visit(index of x, of w, of y) for every product of the convolution.
template <typename Visit>
void for_each_product(const ConvolutionCall& call, Visit visit) {
  const Shape y = call.y();
  const std::int64_t in = call.w[1], per_group = call.w[0] / call.groups;
  for (std::int64_t n = 0; n < y[0]; ++n)
    for (std::int64_t k = 0; k < y[1]; ++k)
      for (std::int64_t p = 0; p < y[2]; ++p)
        for (std::int64_t q = 0; q < y[3]; ++q)
          for (std::int64_t c = 0; c < in; ++c)
            for (std::int64_t r = 0; r < call.w[2]; ++r)
              for (std::int64_t s = 0; s < call.w[3]; ++s) {
                const std::int64_t h = p * call.stride[0] + r * call.dilation[0] - call.padding[0];
                const std::int64_t w = q * call.stride[1] + s * call.dilation[1] - call.padding[1];
                if (h < 0 || h >= call.x[2] || w < 0 || w >= call.x[3]) continue;
                const std::int64_t channel = k / per_group * in + c;
                visit(static_cast<std::size_t>(((n * call.x[1] + channel) * call.x[2] + h) * call.x[3] + w),
                      static_cast<std::size_t>(((k * in + c) * call.w[2] + r) * call.w[3] + s),
                      static_cast<std::size_t>(((n * y[1] + k) * y[2] + p) * y[3] + q));
              }
}

std::size_t channel_of(const Shape& shape, std::size_t i) {
  return i / static_cast<std::size_t>(shape[2] * shape[3]) % static_cast<std::size_t>(shape[1]);
}

double activated(Activation activation, double x) {
  switch (activation) {
    case Activation::none:
      return x;
    case Activation::relu:
      return std::isnan(x) ? x : std::max(x, 0.0);
    case Activation::relu6:
      return std::isnan(x) ? x : std::clamp(x, 0.0, 6.0);
    case Activation::silu:
      return x / (1 + std::exp(-x));
    case Activation::sigmoid:
      return 1 / (1 + std::exp(-x));
    default:
      throw UnsupportedError(fmt::format("no reference for {}", name(activation)));
  }
}

Values with_prologue(const ConvolutionCall& call, const Tensors& inputs) {
  Values x = inputs.at(Role::x);
  if (call.prologue == Prologue::none) return x;
  for (std::size_t i = 0; i < x.size(); ++i) {
    const std::size_t c = channel_of(call.x, i);
    x[i] = x[i] * inputs.at(Role::scale)[c] + inputs.at(Role::shift)[c];
    if (call.prologue == Prologue::affine_relu) x[i] = activated(Activation::relu, x[i]);
    x[i] = rounded(x[i], call.dtype);
  }
  return x;
}

Tensors forward(const ConvolutionCall& call, const Tensors& inputs) {
  const Shape shape = call.y();
  const Values x = with_prologue(call, inputs), &w = inputs.at(Role::w);
  Values y(static_cast<std::size_t>(shape.elements()));
  for_each_product(call, [&](std::size_t i, std::size_t j, std::size_t o) { y[o] += x[i] * w[j]; });
  for (std::size_t i = 0; i < y.size(); ++i) {
    if (call.centre) y[i] -= inputs.at(Role::output_mean)[channel_of(shape, i)];
    if (call.scale) y[i] *= inputs.at(Role::output_scale)[channel_of(shape, i)];
    if (call.side) y[i] += inputs.at(Role::side)[i];
    if (call.bias) y[i] += inputs.at(Role::bias)[channel_of(shape, i)];
    y[i] = activated(call.activation, y[i]);
  }
  Tensors results;
  if (call.sums == Sums::statistics) {
    Values sum(static_cast<std::size_t>(shape[1])), squares(sum.size());
    for (std::size_t i = 0; i < y.size(); ++i) {
      sum[channel_of(shape, i)] += y[i], squares[channel_of(shape, i)] += y[i] * y[i];
    }
    results[Role::sum] = sum, results[Role::second_sum] = squares;
  }
  results[Role::y] = std::move(y);
  return results;
}

bool lets_through(const ConvolutionCall& call, const Tensors& inputs, std::size_t i) {
  if (call.mask == Mask::none) return true;
  if (call.mask != Mask::recompute) return inputs.at(Role::mask)[i] > 0;
  const std::size_t c = channel_of(call.x, i);
  const double normal = (inputs.at(Role::pre_norm)[i] - inputs.at(Role::mean)[c]) * inputs.at(Role::inverse_std)[c];
  return normal * inputs.at(Role::gamma)[c] + inputs.at(Role::beta)[c] > 0;
}

void add_gradient_sums(const ConvolutionCall& call, const Tensors& inputs, const Values& dz, Tensors& results) {
  if (call.sums == Sums::bias) {
    Values& sum = results[Role::sum];
    sum.resize(static_cast<std::size_t>(call.x[1]));
    for (std::size_t i = 0; i < dz.size(); ++i) sum[channel_of(call.x, i)] += dz[i];
    return;
  }
  const Values &y = inputs.at(Role::pre_norm), &mean = inputs.at(Role::mean);
  Values sum(static_cast<std::size_t>(call.x[1])), second(sum.size());
  for (std::size_t i = 0; i < dz.size(); ++i) {
    const std::size_t c = channel_of(call.x, i);
    sum[c] += dz[i], second[c] += dz[i] * (y[i] - mean[c]);
  }
  if (call.sums == Sums::batch_norm_weights) {
    const double count = static_cast<double>(call.x[0] * call.x[2] * call.x[3]);
    Values of_dy(sum.size()), of_x(sum.size()), of_one(sum.size());
    for (std::size_t c = 0; c < sum.size(); ++c) {
      const double inverse = inputs.at(Role::inverse_std)[c], scale = inputs.at(Role::gamma)[c] * inverse;
      second[c] *= inverse;
      of_dy[c] = scale;
      of_x[c] = -scale * inverse * second[c] / count;
      of_one[c] = -scale * sum[c] / count - of_x[c] * mean[c];
    }
    results[Role::coefficient_dy] = of_dy, results[Role::coefficient_x] = of_x;
    results[Role::coefficient_one] = of_one;
  }
  results[Role::sum] = sum, results[Role::second_sum] = second;
}

Tensors input_gradient(const ConvolutionCall& call, const Tensors& inputs) {
  const Values &dy = inputs.at(Role::y), &w = inputs.at(Role::w);
  Values dx(static_cast<std::size_t>(call.x.elements()));
  for_each_product(call, [&](std::size_t i, std::size_t j, std::size_t o) { dx[i] += dy[o] * w[j]; });
  for (std::size_t i = 0; i < dx.size(); ++i) {
    if (call.side) dx[i] += inputs.at(Role::side)[i];
    if (!lets_through(call, inputs, i)) dx[i] = 0;
  }
  Tensors results;
  if (call.sums != Sums::none) add_gradient_sums(call, inputs, dx, results);
  results[Role::x] = std::move(dx);
  return results;
}

}  // namespace

Tensors meant(const ConvolutionCall& call, const Tensors& inputs) {
  if (call.direction == Direction::forward) return forward(call, inputs);
  if (call.direction == Direction::input_gradient) return input_gradient(call, inputs);
  const Values x = with_prologue(call, inputs), &dy = inputs.at(Role::y);
  Values dw(static_cast<std::size_t>(call.w.elements()));
  for_each_product(call, [&](std::size_t i, std::size_t j, std::size_t o) { dw[j] += x[i] * dy[o]; });
  return {{Role::w, std::move(dw)}};
}

bool is_read(const ConvolutionCall& call, Role role) {
  const Role result = call.direction == Direction::forward          ? Role::y
                      : call.direction == Direction::input_gradient ? Role::x
                                                                    : Role::w;
  return role != result && role < Role::sum;
}

Tensors made_up(const ConvolutionCall& call, const std::vector<cudnn::TensorUse>& tensors, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  Tensors made;
  for (const cudnn::TensorUse& tensor : tensors) {
    if (!is_read(call, tensor.role)) continue;
    Values& values = made[tensor.role];
    for (std::int64_t i = 0; i < tensor.type.elements(); ++i) {
      double value = 2 * static_cast<double>(random() >> 11) * 0x1p-53 - 1;
      if (tensor.type.dtype == DType::b1) {
        values.push_back(value > 0);
        continue;
      }
      if (tensor.role == Role::inverse_std) value = 1 + 0.5 * value;
      values.push_back(rounded(value, tensor.type.dtype));
    }
  }
  return made;
}

std::vector<std::byte> to_bytes(const Type& type, const Values& values) {
  FJ_ASSERT(static_cast<std::int64_t>(values.size()) == type.elements(), "{} values for {}", values.size(), type.str());
  std::vector<std::byte> bytes(static_cast<std::size_t>(type.bytes()));
  const Shape& d = type.shape;
  for (std::int64_t i = 0; i < type.elements(); ++i) {
    const std::int64_t w = i % d[3], h = i / d[3] % d[2], c = i / (d[3] * d[2]) % d[1], n = i / (d[3] * d[2] * d[1]);
    const std::int64_t at = type.layout == Layout::nhwc ? ((n * d[2] + h) * d[3] + w) * d[1] + c : i;
    const double value = values[static_cast<std::size_t>(i)];
    if (type.dtype == DType::b1) {
      if (value != 0) bytes[static_cast<std::size_t>(at / 8)] |= std::byte{1} << (at % 8);
    } else {
      ir::store_element(bytes.data(), type.dtype, at, ir::cast(ir::Scalar::of(value), type.dtype));
    }
  }
  return bytes;
}

Values from_bytes(const Type& type, const std::vector<std::byte>& bytes) {
  Values values;
  const Shape& d = type.shape;
  for (std::int64_t i = 0; i < type.elements(); ++i) {
    const std::int64_t w = i % d[3], h = i / d[3] % d[2], c = i / (d[3] * d[2]) % d[1], n = i / (d[3] * d[2] * d[1]);
    const std::int64_t at = type.layout == Layout::nhwc ? ((n * d[2] + h) * d[3] + w) * d[1] + c : i;
    values.push_back(ir::load_element(bytes.data(), type.dtype, at).as_double());
  }
  return values;
}

}  // namespace fusejit::gpu_check
