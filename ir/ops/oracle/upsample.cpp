#include "ir/ops/oracle/upsample.h"

#include <algorithm>

#include "ir/ops/geometry/span.h"
#include "ir/ops/oracle/oracle.h"

namespace fusejit::ir {
namespace {

// What one output row (or column) reads: two input rows and the share of the second.
struct Taps {
  std::int64_t first, second;
  double share;
};

Taps taps(const ImageSpan& span, std::int64_t o) {
  if (const auto* nearest = std::get_if<NearestAxis>(&span)) return {nearest->cell(o), nearest->cell(o), 0};
  const auto& linear = std::get<LinearAxis>(span);
  const std::int64_t place = std::clamp<std::int64_t>(linear.place(o), 0, linear.last_place());
  const std::int64_t first = place / linear.unit;
  const double share = static_cast<double>(place % linear.unit) / static_cast<double>(linear.unit);
  return {first, std::min(first + 1, linear.in - 1), share};
}

// y[p,q] = Σ share · x, or its transpose.
void evaluate(const EvalContext& context, bool is_transposed) {
  const std::vector<double> source = oracle::doubles(context, 0);
  const Shape &operand = oracle::shape(context, 0), &result = context.result.type.shape;
  const Shape &x = is_transposed ? result : operand, &y = is_transposed ? operand : result;
  const ImageSpan down = span_of(context.node, 0), across = span_of(context.node, 1);
  std::vector<double> sums(static_cast<std::size_t>(result.elements()));
  for (std::int64_t image = 0, out = 0; image < x[0] * x[1]; ++image)
    for (std::int64_t p = 0; p < y[2]; ++p)
      for (std::int64_t q = 0; q < y[3]; ++q, ++out) {
        const Taps rows = taps(down, p), columns = taps(across, q);
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

}  // namespace

void evaluate_upsample(const EvalContext& context) { evaluate(context, false); }
void evaluate_upsample_grad(const EvalContext& context) { evaluate(context, true); }

}  // namespace fusejit::ir
