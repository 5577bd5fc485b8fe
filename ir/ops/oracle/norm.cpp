#include "ir/ops/oracle/norm.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "ir/ops/oracle/oracle.h"

namespace fusejit::ir {
namespace {

using oracle::Split;

struct Moments {
  double mean = 0, square_sum = 0;
};
// Of x[position(0)], x[position(1)], ...
template <class F>
Moments moments(const std::vector<double>& x, std::int64_t count, F position) {
  Moments m;
  for (std::int64_t i = 0; i < count; ++i) m.mean += x[position(i)];
  m.mean /= static_cast<double>(count);
  for (std::int64_t i = 0; i < count; ++i) m.square_sum += (x[position(i)] - m.mean) * (x[position(i)] - m.mean);
  return m;
}

// One channel of x [N,C,*] with its statistics as the training ops use them.
struct Channel {
  const Split& split;
  std::int64_t channel;
  std::int64_t count;      // elements
  double left;             // count - correction
  double mean = 0, d = 0;  // d = 1/(deviation), however eps enters
  double slope = 0;        // derivative of d with respect to the variance

  Channel(const EvalContext& context, const std::vector<double>& x, const Split& s, std::int64_t c)
      : split(s), channel(c), count(s.outer * s.inner), left(batch_norm_divisor(count, context.node.attrs)) {
    const Moments m = moments(x, count, [&](std::int64_t i) { return position(i); });
    const double variance = m.square_sum / left, root = std::sqrt(variance), eps = oracle::number(context, "eps");
    const bool outside = context.node.attrs.flag("eps_outside");
    mean = m.mean;
    d = outside ? 1 / (root + eps) : 1 / std::sqrt(variance + eps);
    slope = outside ? -d * d / (2 * root) : -d * d * d / 2;
  }
  std::size_t position(std::int64_t i) const {
    return static_cast<std::size_t>(split.at(i / split.inner, channel, i % split.inner));
  }
};

// Σg and Σg (x - mean) of a channel.
struct GradientSums {
  double plain = 0, centred = 0;
};
GradientSums gradient_sums(const Channel& c, const std::vector<double>& x, const std::vector<double>& g) {
  GradientSums sums;
  for (std::int64_t i = 0; i < c.count; ++i) {
    sums.plain += g[c.position(i)];
    sums.centred += g[c.position(i)] * (x[c.position(i)] - c.mean);
  }
  return sums;
}

// Slices of `length` neighbours are normalised; the affine's index of element i is affine(i).
template <class F>
void evaluate_slices(const EvalContext& context, std::int64_t length, std::int64_t vector_size, F affine) {
  const std::vector<double> x = oracle::doubles(context, 0);
  const std::vector<double> weight = oracle::doubles(context, 1, vector_size);
  const std::vector<double> bias = oracle::doubles(context, 2, vector_size);
  const double eps = oracle::number(context, "eps");
  for (std::int64_t first = 0; first < static_cast<std::int64_t>(x.size()); first += length) {
    const Moments m = moments(x, length, [&](std::int64_t i) { return static_cast<std::size_t>(first + i); });
    const double d = 1 / std::sqrt(m.square_sum / static_cast<double>(length) + eps);
    for (std::int64_t i = first; i < first + length; ++i) {
      const std::size_t k = static_cast<std::size_t>(affine(i));
      oracle::store(context.result, i, (x[static_cast<std::size_t>(i)] - m.mean) * d * weight[k] + bias[k]);
    }
  }
}

void evaluate_groups(const EvalContext& context, std::int64_t groups) {
  const Split split(oracle::shape(context, 0), 1);
  evaluate_slices(context, split.size / std::max<std::int64_t>(groups, 1) * split.inner, split.size,
                  [&](std::int64_t i) { return i / split.inner % split.size; });
}

}  // namespace

double batch_norm_divisor(std::int64_t count, const Attrs& attrs) {
  const double left = static_cast<double>(count) - static_cast<double>(attrs.integer("correction"));
  return left > 0 ? left : std::numeric_limits<double>::quiet_NaN();
}

void evaluate_batch_norm(const EvalContext& context) {
  const Split split(oracle::shape(context, 0), 1);
  const auto of = [&](std::size_t i) { return oracle::doubles(context, i, split.size); };
  const std::vector<double> x = of(0), mean = of(1), var = of(2), weight = of(3), bias = of(4);
  const double eps = oracle::number(context, "eps");
  for (std::size_t i = 0; i < x.size(); ++i) {
    const std::size_t c = i / static_cast<std::size_t>(split.inner) % static_cast<std::size_t>(split.size);
    oracle::store(context.result, static_cast<std::int64_t>(i),
                  (x[i] - mean[c]) / std::sqrt(var[c] + eps) * weight[c] + bias[c]);
  }
}

void evaluate_batch_norm_train(const EvalContext& context) {
  const Split split(oracle::shape(context, 0), 1);
  const std::vector<double> x = oracle::doubles(context, 0);
  const std::vector<double> weight = oracle::doubles(context, 1, split.size);
  const std::vector<double> bias = oracle::doubles(context, 2, split.size);
  for (std::size_t k = 0; k < static_cast<std::size_t>(split.size); ++k) {
    const Channel c(context, x, split, static_cast<std::int64_t>(k));
    for (std::int64_t i = 0; i < c.count; ++i)
      oracle::store(context.result, static_cast<std::int64_t>(c.position(i)),
                    (x[c.position(i)] - c.mean) * c.d * weight[k] + bias[k]);
  }
}

void evaluate_batch_norm_train_input_grad(const EvalContext& context) {
  const Split split(oracle::shape(context, 0), 1);
  const std::vector<double> x = oracle::doubles(context, 0), g = oracle::doubles(context, 2);
  const std::vector<double> weight = oracle::doubles(context, 1, split.size);
  for (std::size_t k = 0; k < static_cast<std::size_t>(split.size); ++k) {
    const Channel c(context, x, split, static_cast<std::int64_t>(k));
    const GradientSums sums = gradient_sums(c, x, g);
    const double average = sums.plain / static_cast<double>(c.count);
    for (std::int64_t i = 0; i < c.count; ++i) {
      const std::size_t at = c.position(i);
      const double through_variance = sums.centred * c.slope * 2 * (x[at] - c.mean) / c.left;
      oracle::store(context.result, static_cast<std::int64_t>(at),
                    weight[k] * (c.d * (g[at] - average) + through_variance));
    }
  }
}

void evaluate_batch_norm_train_weight_grad(const EvalContext& context) {
  const Split split(oracle::shape(context, 0), 1);
  const std::vector<double> x = oracle::doubles(context, 0), g = oracle::doubles(context, 1);
  for (std::int64_t k = 0; k < split.size; ++k) {
    const Channel c(context, x, split, k);
    oracle::store(context.result, k, c.d * gradient_sums(c, x, g).centred);
  }
}

void evaluate_layer_norm(const EvalContext& context) {
  const std::int64_t length = Shape(context.node.attrs.ints("normalized_shape")).elements();
  evaluate_slices(context, length, length, [&](std::int64_t i) { return i % length; });
}

void evaluate_group_norm(const EvalContext& context) {
  evaluate_groups(context, context.node.attrs.integer("num_groups"));
}

void evaluate_instance_norm(const EvalContext& context) { evaluate_groups(context, oracle::shape(context, 0)[1]); }

}  // namespace fusejit::ir
