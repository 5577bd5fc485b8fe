// Element-wise rows exp ... cos (ops.md §4). Engines run the fragments; `eval` is the library's f64 function, rounded once.
#include <cmath>

#include "ir/ops/eval.h"
#include "ir/ops/fragments.h"
#include "ir/ops/rows.h"

namespace fusejit::ir {
namespace {

using namespace rows;
using namespace expr;

constexpr double kLn2 = 0.69314718055994530942;
constexpr double kLn10 = 2.30258509299404568402;
constexpr double kTwoOverRootPi = 1.12837916709551257390;

// Neither branch overflows: e^-|x| is at most 1.
double sigmoid_of(double x) {
  const double e = std::exp(-std::fabs(x));
  return x >= 0 ? 1 / (1 + e) : e / (1 + e);
}

// e^(-x^2)
Value bell(const Value& x) { return apply(Op::exp, {-(x * x)}); }

constexpr OpDef kRows[] = {
    {.op = Op::exp, .name = "exp", .dtype_rule = DTypeRule::floating,
     .grad = [](const GradContext& g) { return Grads{g.dy * g.y}; },
     .eval = [](Args a, const Attrs&) { return function(a, [](double x) { return std::exp(x); }); },
     .cuda = {.floating = "exp{f}($0)"},
     .fragment_f32 = fragments::kExpF32, .fragment_f64 = fragments::kExpF64, .ulp = 4,
     .domain_low = -80, .domain_high = 80, .cost = 16, .meaning = "e^x"},
    {.op = Op::exp2, .name = "exp2", .dtype_rule = DTypeRule::floating,
     .grad = [](const GradContext& g) { return Grads{g.dy * (g.y * kLn2)}; },
     .eval = [](Args a, const Attrs&) { return function(a, [](double x) { return std::exp2(x); }); },
     .cuda = {.floating = "exp2{f}($0)"},
     .fragment_f32 = fragments::kExp2F32, .fragment_f64 = fragments::kExp2F64, .ulp = 4,
     .domain_low = -120, .domain_high = 120, .cost = 14, .meaning = "2^x"},
    {.op = Op::expm1, .name = "expm1", .dtype_rule = DTypeRule::floating,
     .grad = [](const GradContext& g) { return Grads{g.dy * (g.y + 1)}; },
     .eval = [](Args a, const Attrs&) { return function(a, [](double x) { return std::expm1(x); }); },
     .cuda = {.floating = "expm1{f}($0)"},
     .fragment_f32 = fragments::kExpm1F32, .fragment_f64 = fragments::kExpm1F64, .ulp = 4,
     .domain_low = -80, .domain_high = 80, .cost = 20, .meaning = "e^x - 1, accurate for small x"},
    {.op = Op::log, .name = "log", .dtype_rule = DTypeRule::floating,
     .grad = [](const GradContext& g) { return Grads{g.dy / g.x(0)}; },
     .eval = [](Args a, const Attrs&) { return function(a, [](double x) { return std::log(x); }); },
     .cuda = {.floating = "log{f}($0)"},
     .fragment_f32 = fragments::kLogF32, .fragment_f64 = fragments::kLogF64, .ulp = 4,
     .domain_low = 1e-30, .domain_high = 1e+30, .cost = 18, .meaning = "the natural logarithm; NaN below 0"},
    {.op = Op::log2, .name = "log2", .dtype_rule = DTypeRule::floating,
     .grad = [](const GradContext& g) { return Grads{g.dy / (g.x(0) * kLn2)}; },
     .eval = [](Args a, const Attrs&) { return function(a, [](double x) { return std::log2(x); }); },
     .cuda = {.floating = "log2{f}($0)"},
     .fragment_f32 = fragments::kLog2F32, .fragment_f64 = fragments::kLog2F64, .ulp = 4,
     .domain_low = 1e-30, .domain_high = 1e+30, .cost = 18, .meaning = "the logarithm to base 2"},
    {.op = Op::log10, .name = "log10", .dtype_rule = DTypeRule::floating,
     .grad = [](const GradContext& g) { return Grads{g.dy / (g.x(0) * kLn10)}; },
     .eval = [](Args a, const Attrs&) { return function(a, [](double x) { return std::log10(x); }); },
     .cuda = {.floating = "log10{f}($0)"},
     .fragment_f32 = fragments::kLog10F32, .fragment_f64 = fragments::kLog10F64, .ulp = 4,
     .domain_low = 1e-30, .domain_high = 1e+30, .cost = 18, .meaning = "the logarithm to base 10"},
    {.op = Op::log1p, .name = "log1p", .dtype_rule = DTypeRule::floating,
     .grad = [](const GradContext& g) { return Grads{g.dy / (g.x(0) + 1)}; },
     .eval = [](Args a, const Attrs&) { return function(a, [](double x) { return std::log1p(x); }); },
     .cuda = {.floating = "log1p{f}($0)"},
     .fragment_f32 = fragments::kLog1pF32, .fragment_f64 = fragments::kLog1pF64, .ulp = 4,
     .domain_low = -0.99, .domain_high = 10000000000.0, .cost = 20, .meaning = "log(1 + x), accurate for small x"},
    {.op = Op::tanh, .name = "tanh", .dtype_rule = DTypeRule::floating,
     .grad = [](const GradContext& g) { return Grads{g.dy * (1 - g.y * g.y)}; },
     .eval = [](Args a, const Attrs&) { return function(a, [](double x) { return std::tanh(x); }); },
     .cuda = {.floating = "tanh{f}($0)"},
     .fragment_f32 = fragments::kTanhF32, .fragment_f64 = fragments::kTanhF64, .ulp = 4,
     .domain_low = -10, .domain_high = 10, .cost = 22, .meaning = "the hyperbolic tangent"},
    {.op = Op::sigmoid, .name = "sigmoid", .dtype_rule = DTypeRule::floating,
     .grad = [](const GradContext& g) { return Grads{g.dy * (g.y * (1 - g.y))}; },
     .eval = [](Args a, const Attrs&) { return function(a, [](double x) { return sigmoid_of(x); }); },
     .cuda = {.floating = "fj_sigmoid($0)"},
     .fragment_f32 = fragments::kSigmoidF32, .fragment_f64 = fragments::kSigmoidF64, .ulp = 4,
     .domain_low = -80, .domain_high = 80, .cost = 20, .meaning = "1 / (1 + e^-x), without overflow"},
    {.op = Op::erf, .name = "erf", .dtype_rule = DTypeRule::floating,
     .grad = [](const GradContext& g) { return Grads{g.dy * (bell(g.x(0)) * kTwoOverRootPi)}; },
     .eval = [](Args a, const Attrs&) { return function(a, [](double x) { return std::erf(x); }); },
     .cuda = {.floating = "erf{f}($0)"},
     .fragment_f32 = fragments::kErfF32, .fragment_f64 = fragments::kErfF64, .ulp = 4,
     .domain_low = -4, .domain_high = 4, .cost = 24, .meaning = "the error function"},
    {.op = Op::erfc, .name = "erfc", .dtype_rule = DTypeRule::floating,
     .grad = [](const GradContext& g) { return Grads{g.dy * (bell(g.x(0)) * -kTwoOverRootPi)}; },
     .eval = [](Args a, const Attrs&) { return function(a, [](double x) { return std::erfc(x); }); },
     .cuda = {.floating = "erfc{f}($0)"},
     .fragment_f32 = fragments::kErfcF32, .fragment_f64 = fragments::kErfcF64, .ulp = 4,
     .domain_low = -4, .domain_high = 8, .cost = 40, .meaning = "1 - erf(x), accurate for large x"},
    {.op = Op::sin, .name = "sin", .dtype_rule = DTypeRule::floating,
     .grad = [](const GradContext& g) { return Grads{g.dy * apply(Op::cos, {g.x(0)})}; },
     .eval = [](Args a, const Attrs&) { return function(a, [](double x) { return std::sin(x); }); },
     .cuda = {.floating = "sin{f}($0)"},
     .fragment_f32 = fragments::kSinF32, .fragment_f64 = fragments::kSinF64, .ulp = 4,
     .domain_low = -100, .domain_high = 100, .cost = 24, .meaning = "the sine; NaN at infinity"},
    {.op = Op::cos, .name = "cos", .dtype_rule = DTypeRule::floating,
     .grad = [](const GradContext& g) { return Grads{-g.dy * apply(Op::sin, {g.x(0)})}; },
     .eval = [](Args a, const Attrs&) { return function(a, [](double x) { return std::cos(x); }); },
     .cuda = {.floating = "cos{f}($0)"},
     .fragment_f32 = fragments::kCosF32, .fragment_f64 = fragments::kCosF64, .ulp = 4,
     .domain_low = -100, .domain_high = 100, .cost = 24, .meaning = "the cosine; NaN at infinity"},
};
static_assert(rows_fill(kRows, kFunction), "a row is missing or out of order");
static_assert(all_well_formed(kRows), "a row lacks a field of its family");

}  // namespace

std::span<const OpDef> function_rows() { return kRows; }

}  // namespace fusejit::ir
