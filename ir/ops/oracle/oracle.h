// What the naive `evaluate` functions are written with: operands as doubles, results rounded once. Sums run in double
// precision, in index order.
#pragma once

#include <cmath>
#include <cstdint>
#include <string_view>
#include <vector>

#include "ir/interp.h"

namespace fusejit::ir::oracle {

// Elements of operand i in row-major order. A number operand, rounded to the compute type, fills `count` elements.
std::vector<double> doubles(const EvalContext& context, std::size_t i, std::int64_t count = 1);
// The operand as whole numbers.
std::vector<std::int64_t> integers(const EvalContext& context, std::size_t i);
// A number attribute, rounded to the compute type of operand 0 (ops.md §2).
double number(const EvalContext& context, std::string_view attribute);
void store(Array& result, std::int64_t index, double value);
void store(Array& result, const std::vector<double>& values);
inline const Shape& shape(const EvalContext& context, std::size_t i) { return context.operands[i]->type.shape; }

// Row-major position <-> index along [outer, axis, inner], where axis is one dim of a shape.
struct Split {
  std::int64_t outer = 1, size = 1, inner = 1;
  Split(const Shape& shape, std::int64_t axis);
  std::int64_t at(std::int64_t o, std::int64_t i, std::int64_t n) const { return (o * size + i) * inner + n; }
};

// The position in an operand of `from`, broadcast to `to`, of every element of `to`.
std::vector<std::int64_t> broadcast_positions(const Shape& from, const Shape& to);

// result[i] = f(x[i])
template <class F>
void map(const EvalContext& context, F f) {
  const std::int64_t count = context.result.type.elements();
  for (std::int64_t i = 0; i < count; ++i) store(context.result, i, f(context.operands[0]->at(i).as_double()));
}

inline double sigmoid(double x) { return x >= 0 ? 1 / (1 + std::exp(-x)) : std::exp(x) / (1 + std::exp(x)); }

}  // namespace fusejit::ir::oracle
