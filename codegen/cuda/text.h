// How dtypes, literals and ops are written in CUDA C++.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "ir/kernel/kernel.h"

namespace fusejit::codegen::cuda {

// "float", "long long", "fj_f16"; b1 is the "unsigned char" that holds eight.
std::string_view type_name(DType dtype);
// "0.1f", "(-3)", "fj_infinity<float>()": stands wherever an operand may.
std::string literal(ir::Scalar value);

// The row's spelling with operands put in, for operands of `operand` dtype (the second operand of `where`). Empty: the
// row has none for this class, and its fragment is written instead.
std::string spelled(ir::Op op, DType operand, DType result, std::span<const std::string> operands);

// The prelude's combiner, "fj_sum".
std::string_view combiner_name(ir::Combiner combiner);
// into = comb(into, from) as a statement, for all components of one combiner.
std::string combination(ir::Combiner combiner, DType dtype, std::span<const std::string> into,
                        std::span<const std::string> from);

}  // namespace fusejit::codegen::cuda
