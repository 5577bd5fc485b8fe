// Types of results: the rules of element-wise ops, and what every `infer` says when it refuses.
#pragma once

#include <optional>
#include <string>

#include "ir/node.h"

namespace fusejit::ir {

// "x", "weight"; rows without names have a, b, c, ...
std::string operand_name(const OpDef& row, std::size_t index);
// dtype_rule and broadcasting (ops.md §2).
Type infer_elementwise(const InferContext& context);
// The dtype that number operands take: the promoted one of the values beside them; nothing if there is no such value.
std::optional<DType> number_dtype(const OpDef& row, std::span<const Operand> operands);
// The dtype that operands of an element-wise op are converted to before the op: `where`'s condition stays bool, and
// logical ops take every operand as it is.
DType operand_dtype(const Node& node, std::size_t operand);
// The broadcast of all value operands' shapes; fails with the op's sentence.
Shape broadcast_all(const InferContext& context);
// A shape from an attribute; fails with the op's sentence.
Shape shape_from(const InferContext& context, std::span<const std::int64_t> dims);

}  // namespace fusejit::ir
