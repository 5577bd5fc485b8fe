// Checks that the `infer` functions of several files share. Each throws a UserError of the form
// "op: sentence (x: f32[2,3], w: f32[4])".
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "ir/node.h"
#include "ir/op.h"

namespace fusejit::ir {

// The row's name of operand i.
std::string_view operand_name(const InferContext& context, std::size_t i);
void require_float(const InferContext& context, std::size_t i);
void require_rank(const InferContext& context, std::size_t i, int rank);
void require_rank_at_least(const InferContext& context, std::size_t i, int rank);
// All tensor operands have the dtype of the first and are float.
void require_one_float_dtype(const InferContext& context);
// Operand i is a number or a float vector [size].
void require_vector(const InferContext& context, std::size_t i, std::int64_t size);
// The attribute has exactly two numbers [H, W], each at least `low`.
void require_pair(const InferContext& context, std::string_view attribute, std::int64_t low);
// The attribute is one of the words.
void require_word(const InferContext& context, std::string_view attribute, std::span<const std::string_view> words);

}  // namespace fusejit::ir
