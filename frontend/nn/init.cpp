// Values are drawn on the host, in f32 but for what is computed in f64, and put where the parameter is. This is the one
// place of it: what draws on a device may take the place of uniform_values and normal_values here.
#include "fusejit/nn/init.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <numeric>

#include "frontend/evaluation/evaluation.h"
#include "frontend/nn/shapes_only.h"
#include "frontend/ops/random.h"
#include "ir/base/check.h"

namespace fusejit::nn::init {
namespace {

void check_finite(const char* function, std::initializer_list<double> numbers) {
  for (const double n : numbers) FJ_CHECK(std::isfinite(n), "{}: {} is not finite", function, n);
}

void set(const Parameter& parameter, const std::vector<float>& values) {
  const Tensor old = parameter.value();
  const Tensor host = from_host(values, old.shape());
  parameter.set(copy_on(old.dtype() == f32 ? host : host.to(old.dtype()).eval(), old.device()));
}

// offset + factor * value
void set_scaled(const Parameter& parameter, std::vector<float> values, double factor, double offset = 0) {
  for (float& v : values) v = static_cast<float>(offset + factor * v);
  set(parameter, values);
}

std::int64_t count_of(const Parameter& parameter) { return parameter.value().elements(); }

struct Fans {
  double in, out;
};

Fans fans(const char* function, const Parameter& parameter) {
  const Type type = parameter.value().type();
  FJ_CHECK(type.shape.rank() >= 2, "{}: parameter '{}' is {}, it must have two axes or more", function,
           parameter.name(), type.str());
  double taps = 1;
  for (int axis = 2; axis < type.shape.rank(); ++axis) taps *= static_cast<double>(type.shape[axis]);
  return {static_cast<double>(type.shape[1]) * taps, static_cast<double>(type.shape[0]) * taps};
}

// A parameter without elements has no fan, and needs none.
double over(double numerator, double fan) { return fan > 0 ? std::sqrt(numerator / fan) : 0; }

double kaiming_deviation(const char* function, const Parameter& parameter, const KaimingOptions& options) {
  FJ_CHECK(options.mode == "fan_in" || options.mode == "fan_out", "{}: mode '{}' is not known (fan_in, fan_out)",
           function, options.mode);
  const Fans fan = fans(function, parameter);
  return calculate_gain(options.nonlinearity, options.a) * over(1, options.mode == "fan_in" ? fan.in : fan.out);
}

// The inverse of the error function within its open interval, to single precision: Giles, "Approximating the erfinv
// function", 2010.
double inverse_erf(double y) {
  const double w = -std::log((1 - y) * (1 + y));
  const auto polynomial = [](double at, std::initializer_list<double> coefficients) {
    double p = 0;
    for (const double c : coefficients) p = p * at + c;
    return p;
  };
  if (w < 5) {
    return y * polynomial(w - 2.5, {2.81022636e-08, 3.43273939e-07, -3.5233877e-06, -4.39150654e-06, 0.00021858087,
                                    -0.00125372503, -0.00417768164, 0.246640727, 1.50140941});
  }
  return y * polynomial(std::sqrt(w) - 3, {-0.000200214257, 0.000100950558, 0.00134934322, -0.00367342844,
                                           0.00573950773, -0.0076224613, 0.00943887047, 1.00167406, 2.83297682});
}

}  // namespace

double calculate_gain(const std::string& nonlinearity, double a) {
  check_finite("calculate_gain", {a});
  for (const char* plain : {"linear", "conv2d", "conv_transpose2d", "sigmoid"}) {
    if (nonlinearity == plain) return 1;
  }
  if (nonlinearity == "tanh") return 5.0 / 3;
  if (nonlinearity == "relu") return std::numbers::sqrt2;
  if (nonlinearity == "leaky_relu") return std::sqrt(2 / (1 + a * a));
  if (nonlinearity == "selu") return 0.75;
  throw UserError(fmt::format(
      "calculate_gain: nonlinearity '{}' is not known (linear, conv2d, conv_transpose2d, sigmoid, tanh, relu, "
      "leaky_relu, selu)",
      nonlinearity));
}

void uniform_(const Parameter& parameter, double a, double b) {
  check_finite("uniform_", {a, b});
  FJ_CHECK(a <= b, "uniform_: the interval from {} to {} is empty", a, b);
  if (ShapesOnly::is_on()) return;
  set_scaled(parameter, uniform_values(count_of(parameter), 1), (b - a) / 2, (a + b) / 2);
}

void normal_(const Parameter& parameter, double mean, double std) {
  check_finite("normal_", {mean, std});
  FJ_CHECK(std >= 0, "normal_: the deviation is {}, it must not be negative", std);
  if (ShapesOnly::is_on()) return;
  set_scaled(parameter, normal_values(count_of(parameter), 1), std, mean);
}

// By the inverse of the distribution function, as PyTorch does.
void trunc_normal_(const Parameter& parameter, double mean, double std, double a, double b) {
  check_finite("trunc_normal_", {mean, std, a, b});
  FJ_CHECK(std > 0, "trunc_normal_: the deviation is {}, it must be above 0", std);
  FJ_CHECK(a <= b, "trunc_normal_: the interval from {} to {} is empty", a, b);
  if (ShapesOnly::is_on()) return;
  const auto share = [&](double bound) { return std::erf((bound - mean) / (std * std::numbers::sqrt2)); };
  const double low = share(a), high = share(b);
  std::vector<float> values = uniform_values(count_of(parameter), 1);
  for (float& v : values) {
    const double normal = inverse_erf(low + (high - low) * (v + 1) / 2) * std::numbers::sqrt2;
    // A share of 1 or -1 has no inverse: it stands for the bound.
    v = static_cast<float>(std::isfinite(normal) ? std::clamp(mean + std * normal, a, b) : v < 0 ? a : b);
  }
  set(parameter, values);
}

void constant_(const Parameter& parameter, double value) {
  if (ShapesOnly::is_on()) return;
  set(parameter, std::vector<float>(static_cast<std::size_t>(count_of(parameter)), static_cast<float>(value)));
}
void zeros_(const Parameter& parameter) { constant_(parameter, 0); }
void ones_(const Parameter& parameter) { constant_(parameter, 1); }

void xavier_uniform_(const Parameter& parameter, double gain) {
  const Fans fan = fans("xavier_uniform_", parameter);
  const double bound = gain * over(6, fan.in + fan.out);
  uniform_(parameter, -bound, bound);
}

void xavier_normal_(const Parameter& parameter, double gain) {
  const Fans fan = fans("xavier_normal_", parameter);
  normal_(parameter, 0, gain * over(2, fan.in + fan.out));
}

void kaiming_uniform_(const Parameter& parameter, const KaimingOptions& options) {
  const double bound = std::numbers::sqrt3 * kaiming_deviation("kaiming_uniform_", parameter, options);
  uniform_(parameter, -bound, bound);
}

void kaiming_normal_(const Parameter& parameter, const KaimingOptions& options) {
  normal_(parameter, 0, kaiming_deviation("kaiming_normal_", parameter, options));
}

// A normal matrix by Gram and Schmidt's method in f64, each vector against those before it twice ("twice is enough",
// Giraud et al. 2005). Its triangular factor has a positive diagonal, so the result is distributed as by PyTorch's.
void orthogonal_(const Parameter& parameter, double gain) {
  check_finite("orthogonal_", {gain});
  const Fans fan = fans("orthogonal_", parameter);
  if (ShapesOnly::is_on() || fan.in == 0 || fan.out == 0) return;
  const auto rows = static_cast<std::size_t>(parameter.value().shape()[0]);
  const std::size_t columns = static_cast<std::size_t>(count_of(parameter)) / rows;
  const std::size_t vectors = std::min(rows, columns), length = std::max(rows, columns);
  const std::vector<float> drawn = normal_values(count_of(parameter), 1);
  std::vector<double> v(drawn.begin(), drawn.end());
  const auto vector = [&](std::size_t i) { return v.begin() + static_cast<std::ptrdiff_t>(i * length); };
  const auto dot = [&](std::size_t i, std::size_t j) {
    return std::inner_product(vector(i), vector(i) + static_cast<std::ptrdiff_t>(length), vector(j), 0.0);
  };
  for (std::size_t i = 0; i < vectors; ++i) {
    for (int again = 0; again < 2; ++again) {
      for (std::size_t j = 0; j < i; ++j) {
        const double along = dot(i, j);
        for (std::size_t k = 0; k < length; ++k) v[i * length + k] -= along * v[j * length + k];
      }
    }
    const double norm = std::sqrt(dot(i, i));
    for (std::size_t k = 0; k < length; ++k) v[i * length + k] /= norm;
  }
  std::vector<float> values(v.size());
  for (std::size_t r = 0; r < rows; ++r) {
    for (std::size_t c = 0; c < columns; ++c)
      values[r * columns + c] = static_cast<float>(gain * (rows <= columns ? v[r * length + c] : v[c * length + r]));
  }
  set(parameter, values);
}

}  // namespace fusejit::nn::init
