// Losses (ops.md §7). Each is an unreduced value in the compute type, then `reduction`; results have x's dtype.
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
Value call(Op op, const Operand& a, const Operand& b) { return build(op, {a, b}); }

constexpr std::string_view kReductions[] = {"mean", "sum", "none"};
bool reduces(const Attrs& attrs) { return attrs.word("reduction") != "none"; }
bool averages(const Attrs& attrs) { return attrs.word("reduction") == "mean"; }

// ---- class targets: (x [N,C,*], target [N,*])

Shape target_shape(const Shape& x) {
  Dims dims(x.begin(), x.end());
  dims.erase(dims.begin() + 1);
  return Shape(dims);
}

Type infer_classes(const InferContext& context) {
  require_word(context, "reduction", kReductions);
  require_float(context, 0);
  require_rank_at_least(context, 0, 2);
  const Type &x = context.type(0), &target = context.type(1);
  if (!is_int(target.dtype)) context.fail(fmt::format("target must be int, it is {}", name(target.dtype)));
  if (target.shape != target_shape(x.shape))
    context.fail(fmt::format("target must have the shape {}, that of x without dim 1", target_shape(x.shape).str()));
  return {x.dtype, reduces(context.attrs) ? Shape{} : target.shape};
}

Type infer_cross_entropy(const InferContext& context) {
  const double smoothing = context.attrs.number("label_smoothing");
  if (!(smoothing >= 0 && smoothing <= 1)) context.fail("label_smoothing must lie between 0 and 1");
  return infer_classes(context);
}

// Targets with the room that ignore_index and the number of any class need, and where they are ignored.
struct Targets {
  Value index, ignored;
};

Targets targets(const Operand& target, const Attrs& attrs) {
  const std::int64_t ignore = attrs.integer("ignore_index");
  const DType room = holds(DType::i32, ignore) ? compute_type(target.value.type().dtype) : DType::i64;
  const Value index = cast_to(target.value, room);
  return {index, call(Op::eq, index, ignore)};
}

// How many targets count, as a float[].
Value counted(const Targets& t, DType dtype) {
  const Dims dims = all_dims(t.ignored.type().shape.rank());
  return cast_to(sum(call(Op::logical_not, t.ignored), dims), dtype);
}

Value reduced_classes(const Value& loss, const Targets& t, const Attrs& attrs, DType result) {
  if (!reduces(attrs)) return cast_to(loss, result);
  const Value total = sum(loss, all_dims(loss.type().shape.rank()));
  return cast_to(averages(attrs) ? total / counted(t, total.type().dtype) : total, result);
}

// -logp[n, target, *] where counted, else 0.
Value negative_picked(const Value& logp, const Targets& t) {
  const Value index = build(Op::unsqueeze, {t.index}, {{"dim", 1}});
  const Value picked = build(Op::gather, {logp, index}, {{"dim", 1}});
  return where(t.ignored, 0, -reshape(picked, t.index.type().shape));
}

Value expand_nll(Operands operands, const Attrs& attrs, const Type& result) {
  const Targets t = targets(operands[1], attrs);
  return reduced_classes(negative_picked(wide(operands[0].value), t), t, attrs, result.dtype);
}

Value log_softmax_of(const Value& x) { return build(Op::log_softmax, {x}, {{"dim", 1}}); }

Value expand_cross_entropy(Operands operands, const Attrs& attrs, const Type& result) {
  const Targets t = targets(operands[1], attrs);
  const Value logp = log_softmax_of(wide(operands[0].value));
  const double smoothing = attrs.number("label_smoothing");
  Value loss = negative_picked(logp, t);
  if (smoothing != 0) {
    const double share = smoothing / static_cast<double>(logp.type().shape[1]);
    loss = (1 - smoothing) * loss + where(t.ignored, 0, -share * sum(logp, {1}));
  }
  return reduced_classes(loss, t, attrs, result.dtype);
}

// The cotangent of each sample's loss, 0 where it is ignored, with a dim for the classes: [N,1,*].
Value sample_weight(const GradContext& context, const Targets& t) {
  Value g = wide(context.dy);
  if (averages(context.y->attrs)) g = g / counted(t, g.type().dtype);
  return build(Op::unsqueeze, {where(t.ignored, 0, g)}, {{"dim", 1}});
}

// True at the target's class: a comparison with the class's number, which costs no memory as a one-hot would.
Value hits(const Targets& t, const Shape& x) {
  Dims ramp(static_cast<std::size_t>(x.rank()), 1);
  ramp[1] = x[1];
  const Value classes = build(Op::iota, {}, {{"shape", ramp}, {"dim", 1}, {"dtype", t.index.type().dtype}});
  return call(Op::eq, classes, build(Op::unsqueeze, {t.index}, {{"dim", 1}}));
}

std::vector<Value> grad_nll(const GradContext& context) {
  const Targets t = targets(context.operand(1), context.y->attrs);
  const Type& type = context.x(0).type();
  return {cast_to(where(hits(t, type.shape), -sample_weight(context, t), 0), type.dtype), Value()};
}

// (softmax - smoothed one-hot) · g, for targets that count.
std::vector<Value> grad_cross_entropy(const GradContext& context) {
  const Value x = wide(context.x(0));
  const Shape& shape = x.type().shape;
  const Targets t = targets(context.operand(1), context.y->attrs);
  const double smoothing = context.y->attrs.number("label_smoothing");
  const Value weight = sample_weight(context, t);
  const Value probability = build(Op::softmax, {x}, {{"dim", 1}});
  const Value spread = shifted(probability, -smoothing / static_cast<double>(shape[1])) * weight;
  const Value dx = spread - where(hits(t, shape), scaled(weight, 1 - smoothing), 0);
  return {cast_to(dx, context.x(0).type().dtype), Value()};
}

// What a class loss adds for one target; `pick(n, c, i)` is log p.
void evaluate_classes(const EvalContext& context, bool from_logits) {
  const Attrs& attrs = context.node.attrs;
  const std::vector<double> x = oracle::doubles(context, 0);
  const std::vector<std::int64_t> target = oracle::integers(context, 1);
  const oracle::Split split(oracle::shape(context, 0), 1);
  const double smoothing = from_logits ? oracle::number(context, "label_smoothing") : 0;
  std::vector<double> losses;
  double total = 0, count = 0;
  for (std::int64_t o = 0; o < split.outer; ++o)
    for (std::int64_t n = 0; n < split.inner; ++n) {
      const auto at = [&](std::int64_t c) { return x[static_cast<std::size_t>(split.at(o, c, n))]; };
      double maximum = -std::numeric_limits<double>::infinity(), exponents = 0, log_sum = 0, all = 0;
      for (std::int64_t c = 0; c < split.size && from_logits; ++c) maximum = std::fmax(maximum, at(c));
      for (std::int64_t c = 0; c < split.size && from_logits; ++c) exponents += std::exp(at(c) - maximum);
      if (from_logits) log_sum = maximum + std::log(exponents);
      for (std::int64_t c = 0; c < split.size; ++c) all += at(c) - log_sum;
      const std::int64_t t = target[losses.size()];
      if (t == attrs.integer("ignore_index")) {
        losses.push_back(0);
        continue;
      }
      const double picked = t >= 0 && t < split.size ? at(t) - log_sum : std::numeric_limits<double>::quiet_NaN();
      const double smooth = smoothing == 0 ? 0 : smoothing / static_cast<double>(split.size) * all;
      losses.push_back(-(1 - smoothing) * picked - smooth);
      total += losses.back(), count += 1;
    }
  if (!reduces(attrs)) return oracle::store(context.result, losses);
  oracle::store(context.result, 0, averages(attrs) ? total / count : total);
}

// ---- pointwise losses: (x, t), broadcast and promoted

Type infer_pointwise(const InferContext& context) {
  require_word(context, "reduction", kReductions);
  require_float(context, 0);
  require_float(context, 1);
  Shape shape;
  if (!broadcast_shapes(context.type(0).shape, context.type(1).shape, shape))
    context.fail("x and t do not broadcast to one shape");
  return {context.type(0).dtype, reduces(context.attrs) ? Shape{} : shape};
}

struct Pair {
  Value x, t;
};

// Both in the compute type of their promotion.
Pair promoted(const Operand& x, const Operand& t) {
  const DType dtype = compute_type(*promote(x.value.type().dtype, t.value.type().dtype));
  return {cast_to(x.value, dtype), cast_to(t.value, dtype)};
}

Value reduced(const Value& loss, const Attrs& attrs, DType result) {
  const Dims dims = all_dims(loss.type().shape.rank());
  return cast_to(averages(attrs) ? mean(loss, dims) : reduces(attrs) ? sum(loss, dims) : loss, result);
}

template <class F>
Value pointwise(Operands operands, const Attrs& attrs, const Type& result, F loss) {
  const auto [x, t] = promoted(operands[0], operands[1]);
  return reduced(loss(x, t), attrs, result.dtype);
}

Value expand_smooth_l1(Operands operands, const Attrs& attrs, const Type& result) {
  return pointwise(operands, attrs, result, [&](const Value& x, const Value& t) {
    const double beta = attrs.number("beta");
    const Value d = call(Op::abs, x - t);
    if (beta == 0) return d;
    return where(call(Op::lt, d, beta), call(Op::square, d) / (2 * beta), d - beta / 2);
  });
}

Value expand_logits(Operands operands, const Attrs& attrs, const Type& result) {
  return pointwise(operands, attrs, result, [](const Value& x, const Value& t) {
    return call(Op::maximum, x, 0) - x * t + call(Op::log1p, call(Op::exp, -call(Op::abs, x)));
  });
}

std::vector<Value> grad_logits(const GradContext& context) {
  const Attrs& attrs = context.y->attrs;
  const auto [x, t] = promoted(context.operand(0), context.operand(1));
  Shape shape;
  broadcast_shapes(x.type().shape, t.type().shape, shape);
  Value g = cast_to(context.dy, x.type().dtype);
  if (averages(attrs)) g = g / static_cast<double>(shape.elements());
  std::vector<Value> grads(2);
  // Made as wide as both operands, so that a reduced or a broadcast g is summed back as often as it was used.
  const auto to_operand = [&](std::size_t i, const Value& terms) {
    const Type& type = context.x(i).type();
    const Value wide_terms =
        terms.type().shape == shape ? terms : build(Op::expand, {terms}, {{"shape", shape.dims()}});
    return cast_to(sum_to(wide_terms, type.shape), type.dtype);
  };
  if (context.wants(0)) grads[0] = to_operand(0, (call(Op::sigmoid, x) - t) * g);
  if (context.wants(1)) grads[1] = to_operand(1, -x * g);
  return grads;
}

template <class F>
void evaluate_pointwise(const EvalContext& context, F loss) {
  const Attrs& attrs = context.node.attrs;
  Shape shape;
  broadcast_shapes(oracle::shape(context, 0), oracle::shape(context, 1), shape);
  const std::vector<double> x = oracle::doubles(context, 0), t = oracle::doubles(context, 1);
  const auto x_at = oracle::broadcast_positions(oracle::shape(context, 0), shape);
  const auto t_at = oracle::broadcast_positions(oracle::shape(context, 1), shape);
  std::vector<double> losses(x_at.size());
  double total = 0;
  for (std::size_t i = 0; i < losses.size(); ++i)
    total += losses[i] = loss(x[static_cast<std::size_t>(x_at[i])], t[static_cast<std::size_t>(t_at[i])]);
  if (!reduces(attrs)) return oracle::store(context.result, losses);
  oracle::store(context.result, 0, averages(attrs) ? total / static_cast<double>(losses.size()) : total);
}

double smooth_l1(double d, double beta) { return d < beta ? d * d / (2 * beta) : d - beta / 2; }
double logits_loss(double x, double t) { return (x < 0 ? 0 : x) - x * t + std::log1p(std::exp(-std::fabs(x))); }

// ---- rows

constexpr std::string_view kClasses[] = {"logp", "target"}, kLogits[] = {"x", "target"}, kPair[] = {"x", "t"};
constexpr AttrDef kReduction[] = {{"reduction", AttrKind::name, "mean"}};
constexpr AttrDef kNll[] = {{"reduction", AttrKind::name, "mean"}, {"ignore_index", AttrKind::integer, "-100"}};
constexpr AttrDef kCrossEntropy[] = {{"reduction", AttrKind::name, "mean"},
                                     {"ignore_index", AttrKind::integer, "-100"},
                                     {"label_smoothing", AttrKind::number, "0"}};
constexpr AttrDef kSmoothL1[] = {{"reduction", AttrKind::name, "mean"}, {"beta", AttrKind::number, "1"}};

// A row reads as a paragraph.
// clang-format off
constexpr OpDef kRows[] = {
    {.op = Op::nll_loss, .name = "nll_loss", .family = Family::composite, .min_operands = 2, .max_operands = 2,
     .operand_names = kClasses, .attrs = kNll, .infer = infer_classes, .grad = grad_nll, .expand = expand_nll,
     .evaluate = [](const EvalContext& c) { evaluate_classes(c, false); },
     .autocast = AutocastRule::wide, .meaning = "-logp at the target class, 0 where the target is ignore_index"},
    {.op = Op::cross_entropy, .name = "cross_entropy", .family = Family::composite, .min_operands = 2,
     .max_operands = 2, .operand_names = kLogits, .attrs = kCrossEntropy, .infer = infer_cross_entropy,
     .grad = grad_cross_entropy, .expand = expand_cross_entropy,
     .evaluate = [](const EvalContext& c) { evaluate_classes(c, true); }, .cost = 16,
     .autocast = AutocastRule::wide, .meaning = "nll_loss of log_softmax(x) over dim 1, with smoothed targets"},
    {.op = Op::mse_loss, .name = "mse_loss", .family = Family::composite, .min_operands = 2, .max_operands = 2,
     .operand_names = kPair, .attrs = kReduction, .infer = infer_pointwise,
     .expand = [](Operands o, const Attrs& a, const Type& r) {
       return pointwise(o, a, r, [](const Value& x, const Value& t) { return call(Op::square, x - t); });
     },
     .evaluate = [](const EvalContext& c) {
       evaluate_pointwise(c, [](double x, double t) { return (x - t) * (x - t); });
     },
     .cost = 2, .autocast = AutocastRule::wide, .meaning = "(x - t)^2"},
    {.op = Op::l1_loss, .name = "l1_loss", .family = Family::composite, .min_operands = 2, .max_operands = 2,
     .operand_names = kPair, .attrs = kReduction, .infer = infer_pointwise,
     .expand = [](Operands o, const Attrs& a, const Type& r) {
       return pointwise(o, a, r, [](const Value& x, const Value& t) { return call(Op::abs, x - t); });
     },
     .evaluate = [](const EvalContext& c) {
       evaluate_pointwise(c, [](double x, double t) { return std::fabs(x - t); });
     },
     .cost = 2, .autocast = AutocastRule::wide, .meaning = "|x - t|"},
    {.op = Op::smooth_l1_loss, .name = "smooth_l1_loss", .family = Family::composite, .min_operands = 2,
     .max_operands = 2, .operand_names = kPair, .attrs = kSmoothL1,
     .infer = [](const InferContext& c) {
       if (!(c.attrs.number("beta") >= 0)) c.fail("beta must not be negative");
       return infer_pointwise(c);
     },
     .expand = expand_smooth_l1,
     .evaluate = [](const EvalContext& c) {
       evaluate_pointwise(c, [beta = oracle::number(c, "beta")](double x, double t) {
         return smooth_l1(std::fabs(x - t), beta);
       });
     },
     .cost = 5, .autocast = AutocastRule::wide, .meaning = "d = |x - t|: d^2 / (2 beta) where d < beta, else d - beta/2"},
    {.op = Op::binary_cross_entropy_with_logits, .name = "binary_cross_entropy_with_logits",
     .family = Family::composite, .min_operands = 2, .max_operands = 2, .operand_names = kPair, .attrs = kReduction,
     .infer = infer_pointwise, .grad = grad_logits, .expand = expand_logits,
     .evaluate = [](const EvalContext& c) { evaluate_pointwise(c, logits_loss); }, .cost = 20,
     .autocast = AutocastRule::wide, .meaning = "max(x, 0) - x t + log1p(exp(-|x|))"},
};
// clang-format on
static_assert(rows_fill(kRows, kLoss), "a row is missing or out of order");
static_assert(all_well_formed(kRows), "a row lacks a field of its family");

}  // namespace

std::span<const OpDef> loss_rows() { return kRows; }

}  // namespace fusejit::ir
