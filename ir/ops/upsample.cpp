#include "ir/ops/upsample.h"

#include <algorithm>

#include "ir/ops/oracle.h"

namespace fusejit::ir {
namespace {

// What one output row (or column) reads: two input rows and the share of the second.
struct Taps {
  std::int64_t first, second;
  double share;
};

Taps nearest(std::int64_t i, std::int64_t input, std::int64_t output) {
  const std::int64_t row = std::min(i * input / output, input - 1);
  return {row, row, 0};
}

// In the compute type T, as PyTorch does.
template <class T>
Taps linear(std::int64_t i, std::int64_t input, std::int64_t output, bool align_corners) {
  const T scale = align_corners ? (output > 1 ? static_cast<T>(input - 1) / static_cast<T>(output - 1) : T(0))
                                : static_cast<T>(input) / static_cast<T>(output);
  const T at =
      align_corners ? scale * static_cast<T>(i) : std::max(scale * (static_cast<T>(i) + T(0.5)) - T(0.5), T(0));
  const std::int64_t first = std::min(static_cast<std::int64_t>(at), input - 1);
  const T share = std::clamp(at - static_cast<T>(first), T(0), T(1));
  return {first, std::min(first + 1, input - 1), static_cast<double>(share)};
}

// y[p,q] = Σ share · x, or its transpose: `taps(i, input, output)` says what is read.
template <class F>
void evaluate(const EvalContext& context, bool is_transposed, F taps) {
  const std::vector<double> source = oracle::doubles(context, 0);
  const Shape &operand = oracle::shape(context, 0), &result = context.result.type.shape;
  const Shape &x = is_transposed ? result : operand, &y = is_transposed ? operand : result;
  std::vector<double> sums(static_cast<std::size_t>(result.elements()));
  for (std::int64_t image = 0, out = 0; image < x[0] * x[1]; ++image)
    for (std::int64_t p = 0; p < y[2]; ++p)
      for (std::int64_t q = 0; q < y[3]; ++q, ++out) {
        const Taps rows = taps(p, x[2], y[2]), columns = taps(q, x[3], y[3]);
        const auto add = [&](std::int64_t h, std::int64_t w, double share) {
          const std::int64_t in = (image * x[2] + h) * x[3] + w;
          if (share == 0) return;
          sums[static_cast<std::size_t>(is_transposed ? in : out)] +=
              share * source[static_cast<std::size_t>(is_transposed ? out : in)];
        };
        add(rows.first, columns.first, (1 - rows.share) * (1 - columns.share));
        add(rows.first, columns.second, (1 - rows.share) * columns.share);
        add(rows.second, columns.first, rows.share * (1 - columns.share));
        add(rows.second, columns.second, rows.share * columns.share);
      }
  oracle::store(context.result, sums);
}

void evaluate_bilinear(const EvalContext& context, bool is_transposed) {
  const bool corners = context.node.attrs.flag("align_corners");
  const bool is_double = context.result.type.dtype == DType::f64;
  evaluate(context, is_transposed, [=](std::int64_t i, std::int64_t input, std::int64_t output) {
    return is_double ? linear<double>(i, input, output, corners) : linear<float>(i, input, output, corners);
  });
}

}  // namespace

void evaluate_upsample_nearest(const EvalContext& context) { evaluate(context, false, nearest); }
void evaluate_upsample_nearest_grad(const EvalContext& context) { evaluate(context, true, nearest); }
void evaluate_upsample_bilinear(const EvalContext& context) { evaluate_bilinear(context, false); }
void evaluate_upsample_bilinear_grad(const EvalContext& context) { evaluate_bilinear(context, true); }

}  // namespace fusejit::ir
