// Activations, softmax, bias and dropout (ops.md §5): ops that are short for other ops. `expand` says what they mean,
// `evaluate` says it once more, naively and in double precision; `grad` is the derivative that holds at kinks.
#include <cmath>
#include <limits>

#include "ir/kernel/philox.h"
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

constexpr double kSqrtHalf = 0.70710678118654752440;     // 1/√2
constexpr double kInvSqrt2Pi = 0.39894228040143267794;   // 1/√(2π)
constexpr double kSqrt2OverPi = 0.79788456080286535588;  // √(2/π)
constexpr double kGeluCubic = 0.044715;
constexpr double kSeluScale = 1.0507009873554805;
constexpr double kSeluAlpha = 1.6732632423543772;

Value call(Op op, const Operand& a) { return build(op, {a}); }
Value call(Op op, const Operand& a, const Operand& b) { return build(op, {a, b}); }

Type like_x(const InferContext& context) {
  require_float(context, 0);
  return context.type(0);
}

// The formula in the compute type of x, rounded once to the result's dtype.
template <class F>
Value widened(Operands operands, const Type& result, F formula) {
  return cast_to(formula(wide(operands[0].value)), result.dtype);
}

// One cotangent from x and g, computed like `widened`.
template <class F>
std::vector<Value> rule(const GradContext& context, F formula) {
  return {cast_to(formula(wide(context.x(0)), wide(context.dy)), context.dy.type().dtype)};
}

const Attrs& attrs(const GradContext& context) { return context.y->attrs; }

// ---- pieces that rows share

Value relu6_of(const Value& x) { return call(Op::minimum, call(Op::maximum, x, 0), 6); }
Value softplus_of(const Value& x, double beta, double threshold) {
  const Value scaled_x = scaled(x, beta);
  const Value soft = call(Op::log1p, call(Op::exp, scaled_x));
  return where(call(Op::gt, scaled_x, threshold), x, beta == 1 ? soft : soft / beta);
}
Value elu_of(const Value& x, double alpha) { return where(call(Op::gt, x, 0), x, scaled(call(Op::expm1, x), alpha)); }
double softplus(double x, double beta, double threshold) {
  return beta * x > threshold ? x : std::log1p(std::exp(beta * x)) / beta;
}
double relu6(double x) { return x < 0 ? 0 : x > 6 ? 6 : x; }

// ---- gelu

bool by_tanh(const Attrs& attrs) { return attrs.word("approximate") == "tanh"; }
Value gelu_tanh(const Value& x) { return call(Op::tanh, kSqrt2OverPi * (x + kGeluCubic * (x * x * x))); }
Value gelu_cdf(const Value& x) { return 0.5 * (1 + call(Op::erf, x * kSqrtHalf)); }

Type infer_gelu(const InferContext& context) {
  static constexpr std::string_view kForms[] = {"none", "tanh"};
  require_word(context, "approximate", kForms);
  return like_x(context);
}

Value expand_gelu(Operands operands, const Attrs& attrs, const Type& result) {
  return widened(operands, result,
                 [&](const Value& x) { return by_tanh(attrs) ? 0.5 * x * (1 + gelu_tanh(x)) : x * gelu_cdf(x); });
}

std::vector<Value> grad_gelu(const GradContext& context) {
  return rule(context, [&](const Value& x, const Value& g) {
    if (!by_tanh(attrs(context))) return g * (gelu_cdf(x) + x * (kInvSqrt2Pi * call(Op::exp, -0.5 * (x * x))));
    const Value t = gelu_tanh(x);
    const Value inner = kSqrt2OverPi * (1 + 3 * kGeluCubic * (x * x));
    return g * (0.5 * (1 + t) + 0.5 * x * ((1 - t * t) * inner));
  });
}

void evaluate_gelu(const EvalContext& context) {
  if (by_tanh(context.node.attrs))
    oracle::map(context,
                [](double x) { return 0.5 * x * (1 + std::tanh(kSqrt2OverPi * (x + kGeluCubic * x * x * x))); });
  else
    oracle::map(context, [](double x) { return 0.5 * x * std::erfc(-x * kSqrtHalf); });
}

// ---- softmax, log_softmax

Type infer_softmax(const InferContext& context) {
  require_rank_at_least(context, 0, 1);
  return like_x(context);
}

Value exp_of_shifted(const Value& x, const Dims& dim) { return call(Op::exp, x - amax(x, dim, true)); }

Value expand_softmax(Operands operands, const Attrs& attrs, const Type& result) {
  if (result.elements() == 0) return operands[0].value;
  const Dims dim{attrs.integer("dim")};
  return widened(operands, result, [&](const Value& x) {
    const Value e = exp_of_shifted(x, dim);
    return e / sum(e, dim, true);
  });
}

Value expand_log_softmax(Operands operands, const Attrs& attrs, const Type& result) {
  if (result.elements() == 0) return operands[0].value;
  const Dims dim{attrs.integer("dim")};
  return widened(operands, result, [&](const Value& x) {
    return (x - amax(x, dim, true)) - call(Op::log, sum(exp_of_shifted(x, dim), dim, true));
  });
}

std::vector<Value> grad_softmax(const GradContext& context) {
  const Dims dim{attrs(context).integer("dim")};
  const Value y = wide(context.y), g = wide(context.dy);
  return {cast_to(y * (g - sum(g * y, dim, true)), context.dy.type().dtype)};
}

std::vector<Value> grad_log_softmax(const GradContext& context) {
  return rule(context, [&](const Value& x, const Value& g) {
    const std::int64_t dim = attrs(context).integer("dim");
    return g - build(Op::softmax, {x}, {{"dim", dim}}) * sum(g, {dim}, true);
  });
}

// Along `dim`: exp(x - m)/Σ, or its logarithm.
void evaluate_softmax(const EvalContext& context, bool logarithm) {
  const std::vector<double> x = oracle::doubles(context, 0);
  const oracle::Split split(oracle::shape(context, 0), context.node.attrs.integer("dim"));
  for (std::int64_t o = 0; o < split.outer; ++o)
    for (std::int64_t n = 0; n < split.inner; ++n) {
      const auto at = [&](std::int64_t i) { return x[static_cast<std::size_t>(split.at(o, i, n))]; };
      double maximum = -std::numeric_limits<double>::infinity(), total = 0;
      for (std::int64_t i = 0; i < split.size; ++i) maximum = at(i) > maximum || std::isnan(at(i)) ? at(i) : maximum;
      for (std::int64_t i = 0; i < split.size; ++i) total += std::exp(at(i) - maximum);
      for (std::int64_t i = 0; i < split.size; ++i)
        oracle::store(context.result, split.at(o, i, n),
                      logarithm ? at(i) - maximum - std::log(total) : std::exp(at(i) - maximum) / total);
    }
}

// ---- bias_add

Type infer_bias_add(const InferContext& context) {
  require_float(context, 0);
  require_rank_at_least(context, 0, 2);
  require_vector(context, 1, context.type(0).shape[1]);
  return context.type(0);
}

Value expand_bias_add(Operands operands, const Attrs&, const Type& result) {
  return cast_to(operands[0].value + channel(operands[1], result.shape.rank()), result.dtype);
}

std::vector<Value> grad_bias_add(const GradContext& context) {
  const Value& g = context.dy;
  std::vector<Value> grads{g, Value()};
  if (context.wants(1)) {
    // Summed in the wider of the two dtypes, so that f16 activations do not round an f32 bias' gradient.
    const DType bias = context.x(1).type().dtype;
    const Value terms = cast_to(g, *promote(g.type().dtype, bias));
    grads[1] = cast_to(sum(terms, all_but_channel(g.type().shape.rank())), bias);
  }
  return grads;
}

void evaluate_bias_add(const EvalContext& context) {
  const std::vector<double> x = oracle::doubles(context, 0), b = oracle::doubles(context, 1);
  const oracle::Split split(oracle::shape(context, 0), 1);
  for (std::size_t i = 0; i < x.size(); ++i)
    oracle::store(context.result, static_cast<std::int64_t>(i),
                  x[i] + b[i / static_cast<std::size_t>(split.inner) % static_cast<std::size_t>(split.size)]);
}

// ---- dropout

// Kept iff the word's upper 24 bits reach this.
double dropout_threshold(double p) { return std::ceil(p * 0x1p24); }
double dropout_scale(double p) { return p == 1 ? 0 : 1 / (1 - p); }

Type infer_dropout(const InferContext& context) {
  require_float(context, 0);
  const Type& seed = context.type(1);
  if (seed.dtype != DType::i64 || seed.shape.rank() != 0) context.fail("seed must be i64[], the seed of this step");
  const double p = context.attrs.number("p");
  if (!(p >= 0 && p <= 1)) context.fail("p must be a probability between 0 and 1");
  if (context.attrs.integer("stream") < 0) context.fail("stream must not be negative");
  return context.type(0);
}

Value expand_dropout(Operands operands, const Attrs& attrs, const Type& result) {
  const double p = attrs.number("p");
  const Value uniform =
      build(Op::rand, {operands[1]},
            {{"shape", result.shape.dims()}, {"stream", attrs.integer("stream")}, {"dtype", DType::f32}});
  const Value kept = call(Op::ge, uniform, dropout_threshold(p) * 0x1p-24);
  return where(kept, operands[0].value * dropout_scale(p), 0);
}

std::vector<Value> grad_dropout(const GradContext& context) {
  return {build(Op::dropout, {context.dy, context.operand(1)}, attrs(context)), Value()};
}

void evaluate_dropout(const EvalContext& context) {
  const double p = context.node.attrs.number("p");
  const std::int64_t seed = oracle::integers(context, 1)[0], stream = context.node.attrs.integer("stream");
  const double scale = cast(Scalar::of(dropout_scale(p)), compute_type(context.result.type.dtype)).as_double();
  const std::vector<double> x = oracle::doubles(context, 0);
  for (std::size_t i = 0; i < x.size(); ++i) {
    const bool kept = (philox(static_cast<std::int64_t>(i / 4), stream, seed)[i % 4] >> 8) >= dropout_threshold(p);
    oracle::store(context.result, static_cast<std::int64_t>(i), kept ? x[i] * scale : 0);
  }
}

// ---- rows

constexpr std::string_view kX[] = {"x"}, kXBias[] = {"x", "b"}, kXSeed[] = {"x", "seed"};
constexpr AttrDef kLeaky[] = {{"negative_slope", AttrKind::number, "0.01"}};
constexpr AttrDef kElu[] = {{"alpha", AttrKind::number, "1"}};
constexpr AttrDef kGelu[] = {{"approximate", AttrKind::name, "none"}};
constexpr AttrDef kSoftplus[] = {{"beta", AttrKind::number, "1"}, {"threshold", AttrKind::number, "20"}};
constexpr AttrDef kDim[] = {{"dim", AttrKind::dim}};
constexpr AttrDef kDropout[] = {{"p", AttrKind::number, "0.5"}, {"stream", AttrKind::integer, "0"}};

// A row reads as a paragraph.
// clang-format off
constexpr OpDef kRows[] = {
    {.op = Op::relu, .name = "relu", .family = Family::composite, .operand_names = kX,
     .infer = [](const InferContext& c) {
       if (c.type(0).dtype == DType::boolean) c.fail("x must be of an integer or floating-point dtype, it is bool");
       return c.type(0);
     },
     .grad = [](const GradContext& c) -> std::vector<Value> {
       return {where(call(Op::le, c.x(0), 0), 0, c.dy)};
     },
     .expand = [](Operands o, const Attrs&, const Type&) { return call(Op::maximum, o[0], 0); },
     .evaluate = [](const EvalContext& c) {
       if (is_float(c.result.type.dtype)) return oracle::map(c, [](double x) { return x < 0 ? 0 : x; });
       for (std::int64_t i = 0; const std::int64_t x : oracle::integers(c, 0))
         c.result.set(i++, cast(Scalar::of(std::max<std::int64_t>(x, 0)), c.result.type.dtype));
     },
     .meaning = "maximum(x, 0)"},
    {.op = Op::relu6, .name = "relu6", .family = Family::composite, .operand_names = kX, .infer = like_x,
     .grad = [](const GradContext& c) -> std::vector<Value> {
       const Value flat = call(Op::logical_or, call(Op::le, c.x(0), 0), call(Op::ge, c.x(0), 6));
       return {where(flat, 0, c.dy)};
     },
     .expand = [](Operands o, const Attrs&, const Type&) { return relu6_of(o[0].value); },
     .evaluate = [](const EvalContext& c) { oracle::map(c, relu6); },
     .cost = 2, .meaning = "min(max(x, 0), 6)"},
    {.op = Op::leaky_relu, .name = "leaky_relu", .family = Family::composite, .operand_names = kX, .attrs = kLeaky,
     .infer = like_x,
     .grad = [](const GradContext& c) -> std::vector<Value> {
       return {where(call(Op::gt, c.x(0), 0), c.dy, c.dy * attrs(c).number("negative_slope"))};
     },
     .expand = [](Operands o, const Attrs& a, const Type&) {
       return where(call(Op::gt, o[0], 0), o[0], o[0] * a.number("negative_slope"));
     },
     .evaluate = [](const EvalContext& c) {
       oracle::map(c, [s = oracle::number(c, "negative_slope")](double x) { return x > 0 ? x : x * s; });
     },
     .cost = 3, .meaning = "x where x > 0, else x * negative_slope"},
    {.op = Op::elu, .name = "elu", .family = Family::composite, .operand_names = kX, .attrs = kElu, .infer = like_x,
     .grad = [](const GradContext& c) {
       return rule(c, [&](const Value& x, const Value& g) {
         return where(call(Op::gt, x, 0), g, g * scaled(call(Op::exp, x), attrs(c).number("alpha")));
       });
     },
     .expand = [](Operands o, const Attrs& a, const Type& r) {
       return widened(o, r, [&](const Value& x) { return elu_of(x, a.number("alpha")); });
     },
     .evaluate = [](const EvalContext& c) {
       oracle::map(c, [alpha = oracle::number(c, "alpha")](double x) { return x > 0 ? x : alpha * std::expm1(x); });
     },
     .cost = 12, .meaning = "x where x > 0, else alpha * expm1(x)"},
    {.op = Op::selu, .name = "selu", .family = Family::composite, .operand_names = kX, .infer = like_x,
     .grad = [](const GradContext& c) {
       return rule(c, [](const Value& x, const Value& g) {
         return kSeluScale * where(call(Op::gt, x, 0), g, g * (kSeluAlpha * call(Op::exp, x)));
       });
     },
     .expand = [](Operands o, const Attrs&, const Type& r) {
       return widened(o, r, [](const Value& x) { return kSeluScale * elu_of(x, kSeluAlpha); });
     },
     .evaluate = [](const EvalContext& c) {
       oracle::map(c, [](double x) { return kSeluScale * (x > 0 ? x : kSeluAlpha * std::expm1(x)); });
     },
     .cost = 13, .meaning = "1.0507 * (x where x > 0, else 1.6733 * expm1(x))"},
    {.op = Op::gelu, .name = "gelu", .family = Family::composite, .operand_names = kX, .attrs = kGelu,
     .infer = infer_gelu, .grad = grad_gelu, .expand = expand_gelu, .evaluate = evaluate_gelu,
     .cost = 20, .meaning = "x * P(normal variate < x); approximate=tanh: the usual tanh form"},
    {.op = Op::silu, .name = "silu", .family = Family::composite, .operand_names = kX, .infer = like_x,
     .grad = [](const GradContext& c) {
       return rule(c, [](const Value& x, const Value& g) {
         const Value s = call(Op::sigmoid, x);
         return g * (s * (1 + x * (1 - s)));
       });
     },
     .expand = [](Operands o, const Attrs&, const Type& r) {
       return widened(o, r, [](const Value& x) { return x * call(Op::sigmoid, x); });
     },
     .evaluate = [](const EvalContext& c) { oracle::map(c, [](double x) { return x * oracle::sigmoid(x); }); },
     .cost = 14, .meaning = "x * sigmoid(x)"},
    {.op = Op::mish, .name = "mish", .family = Family::composite, .operand_names = kX, .infer = like_x,
     .grad = [](const GradContext& c) {
       return rule(c, [](const Value& x, const Value& g) {
         const Value t = call(Op::tanh, softplus_of(x, 1, 20));
         return g * (t + x * ((1 - t * t) * call(Op::sigmoid, x)));
       });
     },
     .expand = [](Operands o, const Attrs&, const Type& r) {
       return widened(o, r, [](const Value& x) { return x * call(Op::tanh, softplus_of(x, 1, 20)); });
     },
     .evaluate = [](const EvalContext& c) {
       oracle::map(c, [](double x) { return x * std::tanh(softplus(x, 1, 20)); });
     },
     .cost = 35, .meaning = "x * tanh(softplus(x))"},
    {.op = Op::softplus, .name = "softplus", .family = Family::composite, .operand_names = kX, .attrs = kSoftplus,
     .infer = like_x,
     .grad = [](const GradContext& c) {
       return rule(c, [&](const Value& x, const Value& g) {
         const Value bx = scaled(x, attrs(c).number("beta"));
         return where(call(Op::gt, bx, attrs(c).number("threshold")), g, g * call(Op::sigmoid, bx));
       });
     },
     .expand = [](Operands o, const Attrs& a, const Type& r) {
       return widened(o, r, [&](const Value& x) { return softplus_of(x, a.number("beta"), a.number("threshold")); });
     },
     .evaluate = [](const EvalContext& c) {
       oracle::map(c, [b = oracle::number(c, "beta"), t = oracle::number(c, "threshold")](double x) {
         return softplus(x, b, t);
       });
     },
     .cost = 20, .autocast = AutocastRule::wide, .meaning = "x where beta*x > threshold, else log1p(exp(beta*x)) / beta"},
    {.op = Op::hardsigmoid, .name = "hardsigmoid", .family = Family::composite, .operand_names = kX, .infer = like_x,
     .grad = [](const GradContext& c) -> std::vector<Value> {
       const Value slope = call(Op::logical_and, call(Op::gt, c.x(0), -3), call(Op::lt, c.x(0), 3));
       return {where(slope, c.dy / 6, 0)};
     },
     .expand = [](Operands o, const Attrs&, const Type& r) {
       return widened(o, r, [](const Value& x) { return relu6_of(x + 3) / 6; });
     },
     .evaluate = [](const EvalContext& c) { oracle::map(c, [](double x) { return relu6(x + 3) / 6; }); },
     .cost = 4, .meaning = "relu6(x + 3) / 6"},
    {.op = Op::hardswish, .name = "hardswish", .family = Family::composite, .operand_names = kX, .infer = like_x,
     .grad = [](const GradContext& c) {
       return rule(c, [](const Value& x, const Value& g) {
         return where(call(Op::le, x, -3), 0, where(call(Op::lt, x, 3), g * (x / 3 + 0.5), g));
       });
     },
     .expand = [](Operands o, const Attrs&, const Type& r) {
       return widened(o, r, [](const Value& x) { return x * relu6_of(x + 3) / 6; });
     },
     .evaluate = [](const EvalContext& c) { oracle::map(c, [](double x) { return x * relu6(x + 3) / 6; }); },
     .cost = 5, .meaning = "x * relu6(x + 3) / 6"},
    {.op = Op::softmax, .name = "softmax", .family = Family::composite, .operand_names = kX, .attrs = kDim,
     .infer = infer_softmax, .grad = grad_softmax, .expand = expand_softmax,
     .evaluate = [](const EvalContext& c) { evaluate_softmax(c, false); },
     .cost = 14, .autocast = AutocastRule::wide, .meaning = "exp(x - max) / sum of the same along dim"},
    {.op = Op::log_softmax, .name = "log_softmax", .family = Family::composite, .operand_names = kX, .attrs = kDim,
     .infer = infer_softmax, .grad = grad_log_softmax, .expand = expand_log_softmax,
     .evaluate = [](const EvalContext& c) { evaluate_softmax(c, true); },
     .cost = 14, .autocast = AutocastRule::wide, .meaning = "the logarithm of softmax, without overflow"},
    {.op = Op::bias_add, .name = "bias_add", .family = Family::composite, .min_operands = 2, .max_operands = 2,
     .operand_names = kXBias, .infer = infer_bias_add, .grad = grad_bias_add, .expand = expand_bias_add,
     .evaluate = evaluate_bias_add, .meaning = "x + b along dim 1"},
    {.op = Op::dropout, .name = "dropout", .family = Family::composite, .min_operands = 2, .max_operands = 2,
     .operand_names = kXSeed, .attrs = kDropout, .infer = infer_dropout, .grad = grad_dropout,
     .expand = expand_dropout, .evaluate = evaluate_dropout,
     .cost = 40, .meaning = "0 with probability p, else x / (1 - p); drawn from (seed, stream, element)"},
};
// clang-format on
static_assert(rows_fill(kRows, kComposite), "a row is missing or out of order");
static_assert(all_well_formed(kRows), "a row lacks a field of its family");

}  // namespace

std::span<const OpDef> composite_rows() { return kRows; }

}  // namespace fusejit::ir
