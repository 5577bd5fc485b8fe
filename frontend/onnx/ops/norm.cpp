// Normalisation.
#include <algorithm>
#include <cmath>
#include <numeric>

#include "frontend/onnx/call.h"
#include "ir/base/check.h"

namespace fusejit::onnx {
namespace {

using Tensors = std::vector<Tensor>;

// Operands: x, scale, bias, mean, variance. In its training form by the batch's statistics, of which the model keeps a
// running mean: running*momentum + batch*(1 - momentum), the variance by n (ONNX; PyTorch's is by n - 1).
Tensors batch_normalised(const Call& c) {
  const Tensor x = c.tensor(0), scale = c.tensor(1), bias = c.tensor(2), mean_kept = c.tensor(3),
               var_kept = c.tensor(4);
  const double eps = c.number("epsilon", 1e-5);
  if (c.integer("training_mode", 0) == 0 || !c.is_training())
    return {batch_norm(x, mean_kept, var_kept, scale, bias, eps), mean_kept, var_kept};
  Dims axes(static_cast<std::size_t>(std::max(x.rank() - 1, 0)));
  std::iota(axes.begin(), axes.end(), 1);
  if (!axes.empty()) axes[0] = 0;
  const double momentum = c.number("momentum", 0.9);
  const Tensor wide = x.dtype() == f64 ? x : x.to(f32);
  const auto next = [&](const Tensor& kept, const Tensor& batch, int input) {
    Tensor sum = kept * momentum + batch.to(kept.dtype()).detach() * (1 - momentum);
    c.keep(input, sum);
    return sum;
  };
  const Tensor y = batch_norm_train(x, scale, bias, {.eps = eps});
  return {y, next(mean_kept, mean(wide, axes), 3), next(var_kept, var(wide, axes, 0), 4)};
}

Tensors layer_normalised(const Call& c) {
  const Tensor x = c.tensor(0);
  const int axis = axis_of(c.integer("axis", -1), x.rank());
  const Dims last(x.shape().begin() + axis, x.shape().end());
  const auto whole = [&](int input) { return c.has(input) ? expand(c.tensor(input), last) : Tensor(); };
  return {layer_norm(x, last, whole(1), whole(2), c.number("epsilon", 1e-5))};
}

// Up to op set 20 scale and bias are per group, since 21 per channel.
Tensors group_normalised(const Call& c) {
  const Tensor x = c.tensor(0);
  const std::int64_t groups = c.integer("num_groups", 0);
  FJ_CHECK(x.rank() >= 2 && groups >= 1 && x.shape()[1] % groups == 0, "{} groups do not divide the channels (x: {})",
           groups, x.type().str());
  const std::int64_t each = x.shape()[1] / groups;
  const auto by_channel = [&](int input) {
    const Tensor v = c.tensor(input);
    return c.opset() >= 21 ? v : reshape(expand(reshape(v, {groups, 1}), {groups, each}), {groups * each});
  };
  return {group_norm(x, groups, by_channel(1), by_channel(2), c.number("epsilon", 1e-5))};
}

Tensors instance_normalised(const Call& c) {
  return {instance_norm(c.tensor(0), c.tensor(1), c.tensor(2), c.number("epsilon", 1e-5))};
}

// x/(bias + alpha/size * sum of squares over `size` channels around)^beta: the mean of an average pool along channels.
Tensors locally_normalised(const Call& c) {
  const Tensor x = c.tensor(0);
  const std::int64_t size = c.integer("size", 0);
  FJ_CHECK(x.rank() >= 3 && size >= 1, "{} channels around (x: {})", size, x.type().str());
  const std::int64_t before = (size - 1) / 2;
  const Tensor squares = reshape(square(x), {x.shape()[0], 1, x.shape()[1], -1});
  const Tensor means =
      reshape(avg_pool2d(squares, {size, 1}, {.stride = 1, .padding = {before, 0, size - 1 - before, 0}}),
              {x.shape().begin(), x.shape().end()});
  const Tensor base = means * c.number("alpha", 1e-4) + c.number("bias", 1);
  return {x / pow(base, c.number("beta", 0.75))};
}

}  // namespace

std::vector<Row> norm_rows() {
  const AttributeRule epsilon{"epsilon", Kind::number}, momentum{"momentum", Kind::number},
      stash{"stash_type", Kind::integer, "1"};
  const auto batch = [&](int since, int until, std::vector<AttributeRule> attributes) {
    return Row{.op = "BatchNormalization",
               .since = since,
               .until = until,
               .least = 5,
               .most = 5,
               .results = since == 13 ? 1 : 3,
               .attributes = std::move(attributes),
               .statistics = {3, 4},
               .mean = batch_normalised};
  };
  const auto group = [&](int since, int until, std::vector<AttributeRule> attributes) {
    return Row{.op = "GroupNormalization",
               .since = since,
               .until = until,
               .least = 3,
               .most = 3,
               .attributes = std::move(attributes),
               .mean = group_normalised};
  };
  return {
      batch(13, 13, {epsilon, momentum}),
      batch(14, INT_MAX, {epsilon, momentum, {"training_mode", Kind::integer, "0|1"}}),
      {.op = "InstanceNormalization", .least = 3, .most = 3, .attributes = {epsilon}, .mean = instance_normalised},
      {.op = "LayerNormalization",
       .since = 17,
       .least = 2,
       .most = 3,
       .attributes = {{"axis", Kind::integer}, epsilon, stash},
       .mean = layer_normalised},
      group(18, 20, {epsilon, {"num_groups", Kind::integer}}),
      group(21, INT_MAX, {epsilon, {"num_groups", Kind::integer}, stash}),
      {.op = "LRN",
       .attributes = {{"alpha", Kind::number}, {"beta", Kind::number}, {"bias", Kind::number}, {"size", Kind::integer}},
       .mean = locally_normalised},
  };
}

}  // namespace fusejit::onnx
