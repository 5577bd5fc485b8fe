// Normalisation (ops.md §6). Everything is computed in the compute type; the normalised value is formed from the
// difference x - mean. Batch norm in training and its two gradient ops expand to the same mean, difference and
// variance: equal nodes merge, and the statistics of one x are computed once.
#include "ir/ops/oracle/norm.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "ir/base/check.h"
#include "ir/ops/compose.h"
#include "ir/ops/oracle/oracle.h"
#include "ir/ops/require.h"
#include "ir/ops/rows.h"
#include "ir/passes/grad.h"

namespace fusejit::ir {
namespace {

using namespace compose;
using namespace expr;
using Operands = std::span<const Operand>;

Value call(Op op, const Operand& a) { return build(op, {a}); }

// ---- batch norm, inference: (x, mean, var, weight, bias)

Type infer_batch_norm(const InferContext& context) {
  require_float(context, 0);
  require_rank_at_least(context, 0, 2);
  for (std::size_t i = 1; i < context.operands.size(); ++i) require_vector(context, i, context.type(0).shape[1]);
  return context.type(0);
}

struct Inference {
  Value difference, invstd, scale;
};

Inference inference(Operands operands, const Attrs& attrs) {
  const Value x = wide(operands[0].value);
  const DType compute = x.type().dtype;
  const Value variance = cast_to(operands[2].value, compute);
  const Value invstd = call(Op::rsqrt, variance + attrs.number("eps"));
  return {x - channel(cast_to(operands[1], compute), x.type().shape.rank()), invstd,
          scaled(invstd, cast_to(operands[3], compute))};
}

Value expand_batch_norm(Operands operands, const Attrs& attrs, const Type& result) {
  const auto [difference, invstd, scale] = inference(operands, attrs);
  const int rank = result.shape.rank();
  const Operand bias = channel(cast_to(operands[4], difference.type().dtype), rank);
  return cast_to(shifted(difference * channel(scale, rank), bias), result.dtype);
}

std::vector<Value> grad_batch_norm(const GradContext& context) {
  const auto [difference, invstd, scale] = inference(context.y->operands, context.y->attrs);
  const Value g = wide(context.dy);
  const Dims dims = all_but_channel(g.type().shape.rank());
  const Value total = sum(g, dims), product = sum(g * difference, dims);
  const auto as_operand = [&](std::size_t i, const Value& v) {
    return context.wants(i) ? cast_to(v, context.x(i).type().dtype) : Value();
  };
  const Operand weight = cast_to(context.operand(3), g.type().dtype);
  return {as_operand(0, g * channel(scale, g.type().shape.rank())), as_operand(1, -(scale * total)),
          as_operand(2, scaled(product, weight) * (-0.5 * (invstd * invstd * invstd))), as_operand(3, product * invstd),
          as_operand(4, total)};
}

// ---- batch norm, training: (x, weight, bias), (x, weight, g), (x, g)

void check_gradient_operand(const InferContext& context, std::size_t i) {
  if (context.type(i).dtype != context.type(0).dtype || context.type(i).shape != context.type(0).shape)
    context.fail(fmt::format("{} must have the dtype and the shape of x", operand_name(context, i)));
}

Type infer_batch_norm_train(const InferContext& context) {
  require_float(context, 0);
  require_rank_at_least(context, 0, 2);
  require_vector(context, 1, context.type(0).shape[1]);
  if (context.op == Op::batch_norm_train)
    require_vector(context, 2, context.type(0).shape[1]);
  else
    check_gradient_operand(context, 2);
  return context.type(0);
}

Type infer_weight_grad(const InferContext& context) {
  require_float(context, 0);
  require_rank_at_least(context, 0, 2);
  check_gradient_operand(context, 1);
  return {compute_type(context.type(0).dtype), Shape{context.type(0).shape[1]}};
}

struct Statistics {
  Dims dims;
  std::int64_t count;  // elements of a channel
  double divisor;      // count - correction
  Value difference;    // x - mean
  Value root;          // sqrt of the variance; only with eps_outside
  Value invstd;
};

Statistics statistics(const Value& x, const Attrs& attrs) {
  Statistics s;
  s.dims = all_but_channel(x.type().shape.rank());
  s.count = extent(x.type().shape, s.dims);
  s.divisor = batch_norm_divisor(s.count, attrs);
  const Centred c = centred(x, s.dims);
  s.difference = c.difference;
  const Value variance = compose::variance(x, s.dims, attrs.integer("correction"));
  const double eps = attrs.number("eps");
  if (attrs.flag("eps_outside")) {
    s.root = call(Op::sqrt, variance);
    s.invstd = call(Op::reciprocal, s.root + eps);
  } else {
    s.invstd = call(Op::rsqrt, variance + eps);
  }
  return s;
}

Value expand_batch_norm_train(Operands operands, const Attrs& attrs, const Type& result) {
  const Statistics s = statistics(wide(operands[0].value), attrs);
  const DType compute = s.difference.type().dtype;
  const int rank = result.shape.rank();
  const Value scale = scaled(s.invstd, cast_to(operands[1], compute));
  const Value y = s.difference * channel(scale, rank);
  return cast_to(shifted(y, channel(cast_to(operands[2], compute), rank)), result.dtype);
}

// dx = w d (g - Σg/n) + w S d' 2 (x - mean)/(n - correction): two sums, coefficients per channel, one affine.
Value expand_input_grad(Operands operands, const Attrs& attrs, const Type& result) {
  const Statistics s = statistics(wide(operands[0].value), attrs);
  const Value g = wide(operands[2].value);
  const Operand weight = cast_to(operands[1], g.type().dtype);
  const int rank = result.shape.rank();
  const Value average = sum(g, s.dims) / static_cast<double>(s.count);
  const Value product = sum(g * s.difference, s.dims);
  const Value squared = s.invstd * s.invstd;
  const Value slope = s.root ? -(squared / (2 * s.root)) : -0.5 * (squared * s.invstd);
  const Value coefficient = scaled(product * slope, weight) * (2 / s.divisor);
  const Value centre = (g - channel(average, rank)) * channel(scaled(s.invstd, weight), rank);
  return cast_to(centre + s.difference * channel(coefficient, rank), result.dtype);
}

Value expand_weight_grad(Operands operands, const Attrs& attrs, const Type&) {
  const Statistics s = statistics(wide(operands[0].value), attrs);
  return sum(wide(operands[1].value) * s.difference, s.dims) * s.invstd;
}

std::vector<Value> grad_batch_norm_train(const GradContext& context) {
  const Value &x = context.x(0), &g = context.dy;
  const Attrs& attrs = context.y->attrs;
  std::vector<Value> grads(3);
  if (context.wants(0)) grads[0] = build(Op::batch_norm_train_input_grad, {x, context.operand(1), g}, attrs);
  if (context.wants(1))
    grads[1] = cast_to(build(Op::batch_norm_train_weight_grad, {x, g}, attrs), context.x(1).type().dtype);
  if (context.wants(2))
    grads[2] = cast_to(sum(wide(g), all_but_channel(g.type().shape.rank())), context.x(2).type().dtype);
  return grads;
}

std::vector<Value> no_second_derivative(const GradContext& context) {
  throw UnsupportedError(fmt::format(
      "{} cannot be differentiated again (x: {}); write the normalisation with mean, var and element-wise ops for that",
      name(context.y->op), context.x(0).type().str()));
}

// ---- layer, group and instance norm: (x, weight, bias)

Type infer_layer_norm(const InferContext& context) {
  require_float(context, 0);
  const auto wanted = context.attrs.ints("normalized_shape");
  const auto have = context.type(0).shape.dims();
  if (wanted.empty() || wanted.size() > have.size() || !std::equal(wanted.rbegin(), wanted.rend(), have.rbegin()))
    context.fail(fmt::format("normalized_shape must be the last sizes of x, it is [{}]", fmt::join(wanted, ",")));
  for (std::size_t i = 1; i < 3; ++i) {
    if (context.operands[i].is_number()) continue;
    require_float(context, i);
    if (context.type(i).shape != Shape(wanted))
      context.fail(
          fmt::format("{} must have the shape {} of normalized_shape", operand_name(context, i), Shape(wanted).str()));
  }
  return context.type(0);
}

Type infer_group_norm(const InferContext& context) {
  require_float(context, 0);
  require_rank_at_least(context, 0, 2);
  const std::int64_t channels = context.type(0).shape[1], groups = context.attrs.integer("num_groups");
  if (groups < 1 || channels % groups != 0)
    context.fail(fmt::format("num_groups = {} does not divide the {} channels of x", groups, channels));
  for (std::size_t i = 1; i < 3; ++i) require_vector(context, i, channels);
  return context.type(0);
}

Type infer_instance_norm(const InferContext& context) {
  require_float(context, 0);
  require_rank_at_least(context, 0, 2);
  const Shape& shape = context.type(0).shape;
  if (oracle::Split(shape, 1).inner == 1)
    context.fail("x has one element a channel and image, whose variance says nothing");
  for (std::size_t i = 1; i < 3; ++i) require_vector(context, i, shape[1]);
  return context.type(0);
}

// (x - mean) / sqrt(var + eps) over `dims`.
Value normalised(const Value& x, const Dims& dims, double eps) {
  const Value invstd = call(Op::rsqrt, variance(x, dims, 0) + eps);
  return centred(x, dims).difference * reshape(invstd, kept(x.type().shape, dims));
}

Value expand_layer_norm(Operands operands, const Attrs& attrs, const Type& result) {
  const Value x = wide(operands[0].value);
  const DType compute = x.type().dtype;
  Dims dims = all_dims(result.shape.rank());
  dims.erase(dims.begin(), dims.end() - static_cast<std::ptrdiff_t>(attrs.ints("normalized_shape").size()));
  const Value y = scaled(normalised(x, dims, attrs.number("eps")), cast_to(operands[1], compute));
  return cast_to(shifted(y, cast_to(operands[2], compute)), result.dtype);
}

Value affine_per_channel(const Value& y, Operands operands, const Type& result) {
  const auto vector = [&](std::size_t i) { return channel(cast_to(operands[i], y.type().dtype), result.shape.rank()); };
  return cast_to(shifted(scaled(y, vector(1)), vector(2)), result.dtype);
}

Value expand_group_norm(Operands operands, const Attrs& attrs, const Type& result) {
  const Value x = wide(operands[0].value);
  const Shape& shape = result.shape;
  const std::int64_t groups = attrs.integer("num_groups");
  Dims grouped{shape[0], groups, shape[1] / groups};
  if (shape.rank() < kMaxRank)
    grouped.insert(grouped.end(), shape.begin() + 2, shape.end());
  else
    grouped.push_back(oracle::Split(shape, 1).inner);
  Dims dims = all_dims(static_cast<int>(grouped.size()));
  dims.erase(dims.begin(), dims.begin() + 2);
  const Value y = normalised(reshape(x, grouped), dims, attrs.number("eps"));
  return affine_per_channel(reshape(y, shape), operands, result);
}

Value expand_instance_norm(Operands operands, const Attrs& attrs, const Type& result) {
  Dims dims = all_dims(result.shape.rank());
  dims.erase(dims.begin(), dims.begin() + 2);
  return affine_per_channel(normalised(wide(operands[0].value), dims, attrs.number("eps")), operands, result);
}

// ---- rows

constexpr std::string_view kInference[] = {"x", "mean", "var", "weight", "bias"};
constexpr std::string_view kAffine[] = {"x", "weight", "bias"};
constexpr std::string_view kInputGrad[] = {"x", "weight", "g"};
constexpr std::string_view kWeightGrad[] = {"x", "g"};
constexpr AttrDef kEps[] = {{"eps", AttrKind::number, "1e-05"}};
constexpr AttrDef kTrain[] = {{"eps", AttrKind::number, "1e-05"},
                              {"correction", AttrKind::integer, "0"},
                              {"eps_outside", AttrKind::flag, "false"}};
constexpr AttrDef kLayer[] = {{"normalized_shape", AttrKind::ints}, {"eps", AttrKind::number, "1e-05"}};
constexpr AttrDef kGroup[] = {{"num_groups", AttrKind::integer}, {"eps", AttrKind::number, "1e-05"}};

// A row reads as a paragraph.
// clang-format off
constexpr OpDef kRows[] = {
    {.op = Op::batch_norm, .name = "batch_norm", .family = Family::composite, .min_operands = 5, .max_operands = 5,
     .operand_names = kInference, .attrs = kEps, .infer = infer_batch_norm, .number_mask = 0b11000,
     .grad = grad_batch_norm, .expand = expand_batch_norm, .evaluate = evaluate_batch_norm, .cost = 3,
     .meaning = "(x - mean) / sqrt(var + eps) * weight + bias per channel, with given statistics"},
    {.op = Op::batch_norm_train, .name = "batch_norm_train", .family = Family::composite, .min_operands = 3,
     .max_operands = 3, .operand_names = kAffine, .attrs = kTrain, .infer = infer_batch_norm_train,
     .number_mask = 0b110, .grad = grad_batch_norm_train, .expand = expand_batch_norm_train,
     .evaluate = evaluate_batch_norm_train, .cost = 8,
     .meaning = "the same with the statistics of x over all dims but 1"},
    {.op = Op::batch_norm_train_input_grad, .name = "batch_norm_train_input_grad", .family = Family::composite,
     .min_operands = 3, .max_operands = 3, .operand_names = kInputGrad, .attrs = kTrain,
     .infer = infer_batch_norm_train, .number_mask = 0b010, .grad = no_second_derivative,
     .expand = expand_input_grad, .evaluate = evaluate_batch_norm_train_input_grad, .cost = 14,
     .meaning = "the gradient of batch_norm_train with respect to x"},
    {.op = Op::batch_norm_train_weight_grad, .name = "batch_norm_train_weight_grad", .family = Family::composite,
     .min_operands = 2, .max_operands = 2, .operand_names = kWeightGrad, .attrs = kTrain, .infer = infer_weight_grad,
     .grad = no_second_derivative,
     .expand = expand_weight_grad, .evaluate = evaluate_batch_norm_train_weight_grad, .cost = 8,
     .meaning = "the gradient of batch_norm_train with respect to weight, in the compute type"},
    {.op = Op::layer_norm, .name = "layer_norm", .family = Family::composite, .min_operands = 3, .max_operands = 3,
     .operand_names = kAffine, .attrs = kLayer, .infer = infer_layer_norm, .number_mask = 0b110,
     .expand = expand_layer_norm, .evaluate = evaluate_layer_norm, .cost = 8,
     .autocast = AutocastRule::wide, .meaning = "normalised over the last dims, whose sizes are normalized_shape"},
    {.op = Op::group_norm, .name = "group_norm", .family = Family::composite, .min_operands = 3, .max_operands = 3,
     .operand_names = kAffine, .attrs = kGroup, .infer = infer_group_norm, .number_mask = 0b110,
     .expand = expand_group_norm,
     .evaluate = evaluate_group_norm, .cost = 8,
     .autocast = AutocastRule::wide, .meaning = "normalised per image and group of channels"},
    {.op = Op::instance_norm, .name = "instance_norm", .family = Family::composite, .min_operands = 3,
     .max_operands = 3, .operand_names = kAffine, .attrs = kEps, .infer = infer_instance_norm, .number_mask = 0b110,
     .expand = expand_instance_norm,
     .evaluate = evaluate_instance_norm, .cost = 8,
     .meaning = "normalised per image and channel"},
};
// clang-format on
static_assert(rows_fill(kRows, kNorm), "a row is missing or out of order");
static_assert(all_well_formed(kRows), "a row lacks a field of its family");

}  // namespace

std::span<const OpDef> norm_rows() { return kRows; }

}  // namespace fusejit::ir
