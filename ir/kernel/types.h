// The dtypes that ops take and give in kernels (kernel-ir.md §7), read off the rows.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "ir/kernel/kernel.h"

namespace fusejit::ir {

// The dtype of each operand of `op`, where some are literals (nullopt) that take it from the others or from the
// results. nullopt stays where the row does not say: cast(3).
std::vector<std::optional<DType>> operand_dtypes(Op op, std::span<const std::optional<DType>> operands,
                                                 std::span<const DType> results);
// Throws UserError with a sentence unless `op` may stand in a kernel with these dtypes.
void check_dtypes(Op op, std::span<const DType> operands, std::span<const DType> results);

// The dtype of a value that is loaded from or stored to memory of `element`: bool for b1, itself otherwise.
constexpr DType value_dtype(DType element) { return element == DType::b1 ? DType::boolean : element; }
// True for shifts, whose last operand is a literal below the width.
bool last_operand_is_shift_count(Op op);

}  // namespace fusejit::ir
