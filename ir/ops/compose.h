// What expansions and gradient rules of rows are written with. Rows whose formula rounds more than once are computed in
// the compute type and rounded once at the end: wide() on the way in, cast_to() on the way out. In f32 and f64 neither
// makes a node.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "ir/node.h"

namespace fusejit::ir::compose {

using Dims = std::vector<std::int64_t>;

// x in `dtype`; x itself if it has it. Numbers stay numbers.
Value cast_to(const Value& x, DType dtype);
Operand cast_to(const Operand& x, DType dtype);
// x in its compute type: f16 and bf16 become f32.
Value wide(const Value& x);

Value reshape(const Value& x, std::span<const std::int64_t> shape);
Value reshape(const Value& x, const Shape& shape);
Value permute(const Value& x, const Dims& dims);
// The last two dims swapped.
Value transpose(const Value& x);
Value where(const Operand& condition, const Operand& a, const Operand& b);
Value sum(const Value& x, const Dims& dims, bool keepdim = false);
Value mean(const Value& x, const Dims& dims, bool keepdim = false);
Value amax(const Value& x, const Dims& dims, bool keepdim = false);
// `value` in every element.
Value full(const Shape& shape, double value, DType dtype);

Dims all_dims(int rank);
// Every dim but 1: what a per-channel sum reduces.
Dims all_but_channel(int rank);
// A [C] vector as [1,C,1,...] of `rank`; numbers stay numbers.
Operand channel(const Operand& vector, int rank);
// `shape` with size 1 in `dims`.
Shape kept(const Shape& shape, const Dims& dims);
std::int64_t extent(const Shape& shape, const Dims& dims);

// The gradient of a broadcast: g summed to `shape`.
Value sum_to(const Value& g, const Shape& shape);

// a * b and a + b without a node where b is the number 1 or 0.
Value scaled(const Value& a, const Operand& b);
Value shifted(const Value& a, const Operand& b);

// Mean and centred values of x over `dims`, always as the same nodes, so that statistics, normalisation and gradients
// of one x are computed once: mean without kept dims, its reshape, the difference.
struct Centred {
  Value mean;        // dims gone
  Value difference;  // x - mean, shape of x
};
Centred centred(const Value& x, const Dims& dims);
// The variance of x over `dims`, dims gone; with `mean` of the same x and dims it is one reduction.
Value variance(const Value& x, const Dims& dims, std::int64_t correction);

}  // namespace fusejit::ir::compose
