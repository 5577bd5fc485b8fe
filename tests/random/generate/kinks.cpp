// How far the arguments of a graph are from where its derivative jumps.
#include <cmath>
#include <limits>

#include "ir/passes/passes.h"
#include "tests/random/generate/network_check.h"

namespace fusejit::testing {
namespace {

using namespace ir;

// Of all values of `difference` that are not 0 by construction (a tie of equals has one outcome on every engine).
void nearest_zero(const Array& difference, double largest, double& nearest) {
  for (std::int64_t i = 0; i < difference.type.elements(); ++i) {
    const double d = std::fabs(difference.at(i).as_double());
    if (d != 0) nearest = std::min(nearest, d / largest);
  }
}

// The largest of several values and the next below it.
struct Two {
  double most = -HUGE_VAL, next = -HUGE_VAL;
  void meet(double value) {
    if (value > most) {
      next = most, most = value;
    } else if (value < most) {
      next = std::max(next, value);
    }
  }
  void end(double largest, double& nearest) const {
    if (std::isfinite(next)) nearest = std::min(nearest, (most - next) / largest);
  }
};

void nearest_tie_of_windows(const Attrs& attrs, const Array& x, const Shape& y, double largest, double& nearest) {
  const auto kernel = attrs.ints("kernel_size"), stride = attrs.ints("stride"), pad = attrs.ints("padding"),
             dilation = attrs.ints("dilation");
  const Shape& s = x.type.shape;
  for (std::int64_t image = 0; image < y[0] * y[1]; ++image) {
    for (std::int64_t p = 0; p < y[2] * y[3]; ++p) {
      Two two;
      for (std::int64_t k = 0; k < kernel[0] * kernel[1]; ++k) {
        const std::int64_t h = p / y[3] * stride[0] - pad[0] + k / kernel[1] * dilation[0];
        const std::int64_t v = p % y[3] * stride[1] - pad[1] + k % kernel[1] * dilation[1];
        if (h < 0 || v < 0 || h >= s[2] || v >= s[3]) continue;
        two.meet(x.at((image * s[2] + h) * s[3] + v).as_double());
      }
      two.end(largest, nearest);
    }
  }
}

// Maxima over the innermost dims, `cells` elements each.
void nearest_tie_of_rows(const Array& x, std::int64_t cells, double largest, double& nearest) {
  for (std::int64_t row = 0; row < x.type.elements(); row += cells) {
    Two two;
    for (std::int64_t i = 0; i < cells; ++i) two.meet(x.at(row + i).as_double());
    two.end(largest, nearest);
  }
}

}  // namespace

double distance_to_kink(const Graph& recorded, const std::vector<Array>& arguments) {
  const Graph graph = expand(recorded);
  std::vector<Value> wanted, compared;  // a difference and one of the values it is of; of a window its operand twice
  std::vector<const Node*> windows;
  const auto want = [&](const Operand& a, const Operand& b) {
    const Value& of = a.is_number() ? b.value : a.value;
    if (!is_float(of.type().dtype)) return;
    wanted.push_back(build(Op::sub, {a, b}));
    compared.push_back(of);
    windows.push_back(nullptr);
  };
  for (const Value& node : graph.nodes()) {
    const OpDef& row = op_def(node->op);
    if ((row.comparison || node->op == Op::maximum || node->op == Op::minimum) && node->operands.size() == 2)
      want(node->operands[0], node->operands[1]);
    if (node->op == Op::clamp || node->op == Op::abs || node->op == Op::sign) {
      const bool clamp = node->op == Op::clamp;
      for (const char* bound : {"min", "max"}) {
        const double at = clamp ? node->attrs.number(bound) : 0;
        if (std::isfinite(at)) want(node->operands[0], at);
      }
    }
    // A step: at whole numbers, or, of round, half-way between them.
    if (node->op == Op::floor || node->op == Op::ceil || node->op == Op::trunc)
      want(node->operands[0], build(Op::round, {node->operands[0]}));
    if (node->op == Op::round) want(node->operands[0], build(Op::add, {build(Op::floor, {node->operands[0]}), 0.5}));
    const bool is_head = node->op == Op::amax && node.type().shape.rank() == 2 && node->attrs.ints("dim").size() == 2;
    if (node->op == Op::max_pool2d || is_head) {
      wanted.push_back(node->operands[0].value);
      compared.push_back(node->operands[0].value);
      windows.push_back(node.get());
    }
  }
  if (wanted.empty()) return std::numeric_limits<double>::infinity();
  std::vector<Value> results = wanted;
  results.insert(results.end(), compared.begin(), compared.end());
  const std::vector<Array> values = interpret(capture("kinks", graph.parameters(), results), arguments);
  double nearest = std::numeric_limits<double>::infinity();
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    double largest = 1e-300;
    const Array& of = values[wanted.size() + i];
    for (std::int64_t e = 0; e < of.type.elements(); ++e) largest = std::max(largest, std::fabs(of.at(e).as_double()));
    if (!windows[i]) {
      nearest_zero(values[i], largest, nearest);
    } else if (windows[i]->op == Op::max_pool2d) {
      nearest_tie_of_windows(windows[i]->attrs, values[i], windows[i]->type.shape, largest, nearest);
    } else {
      nearest_tie_of_rows(values[i], values[i].type.elements() / windows[i]->type.elements(), largest, nearest);
    }
  }
  return nearest;
}

}  // namespace fusejit::testing
