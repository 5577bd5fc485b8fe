#include "ir/ops/require.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

namespace fusejit::ir {

std::string_view operand_name(const InferContext& context, std::size_t i) {
  const auto names = op_def(context.op).operand_names;
  return i < names.size() ? names[i] : std::string_view("operand");
}

void require_float(const InferContext& context, std::size_t i) {
  const DType dtype = context.type(i).dtype;
  if (!is_float(dtype))
    context.fail(fmt::format("{} must have a floating-point dtype, it has {}", operand_name(context, i), name(dtype)));
}

void require_rank(const InferContext& context, std::size_t i, int rank) {
  const int have = context.type(i).shape.rank();
  if (have != rank)
    context.fail(fmt::format("{} must have rank {}, it has rank {}", operand_name(context, i), rank, have));
}

void require_rank_at_least(const InferContext& context, std::size_t i, int rank) {
  const int have = context.type(i).shape.rank();
  if (have < rank)
    context.fail(fmt::format("{} must have rank {} or more, it has rank {}", operand_name(context, i), rank, have));
}

void require_one_float_dtype(const InferContext& context) {
  require_float(context, 0);
  for (std::size_t i = 1; i < context.operands.size(); ++i)
    if (context.type(i).dtype != context.type(0).dtype)
      context.fail(fmt::format("{} has dtype {}, {} has {}: write a cast", operand_name(context, 0),
                               name(context.type(0).dtype), operand_name(context, i), name(context.type(i).dtype)));
}

void require_vector(const InferContext& context, std::size_t i, std::int64_t size) {
  if (context.operands[i].is_number()) return;
  require_float(context, i);
  const Shape& shape = context.type(i).shape;
  if (shape.rank() != 1 || shape[0] != size)
    context.fail(fmt::format("{} must have the shape [{}], one number per channel, it has {}", operand_name(context, i),
                             size, shape.str()));
}

void require_pair(const InferContext& context, std::string_view attribute, std::int64_t low) {
  const auto values = context.attrs.ints(attribute);
  if (values.size() != 2) context.fail(fmt::format("{} must be two numbers [H, W], it is {}", attribute, values));
  if (values[0] < low || values[1] < low)
    context.fail(fmt::format("{} must be at least {}, it is {}", attribute, low, values));
}

void require_word(const InferContext& context, std::string_view attribute, std::span<const std::string_view> words) {
  const std::string& word = context.attrs.word(attribute);
  if (std::find(words.begin(), words.end(), word) != words.end()) return;
  context.fail(fmt::format("{} must be one of {}, it is {}", attribute, fmt::join(words, ", "), word));
}

}  // namespace fusejit::ir
