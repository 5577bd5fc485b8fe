// Scalar functions of the kernel interpreter: raw words in, a raw word out (the bits of an element, zero-extended).
#pragma once

#include <cstdint>

#include "ir/kernel/kernel.h"

namespace fusejit::ir {

using Word = std::uint64_t;
using ScalarFn = Word (*)(Word a, Word b, Word c);

// A direct function for the ops that inner loops are made of, or null: then the row's `eval` is called. Both give the
// same bits.
ScalarFn direct_function(Op op, DType operand);
// A direct conversion, or null: then ir::cast is called.
ScalarFn direct_cast(DType from, DType to);

// The function of a combiner of one component, or null.
ScalarFn combiner_function(Combiner combiner, DType dtype);
// into = comb(into, from) for all components of argmax, argmin or welford; `types` are those of its components.
void combine(Combiner combiner, const DType* types, Word* into, const Word* from);

}  // namespace fusejit::ir
