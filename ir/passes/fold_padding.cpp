// Zeros around an image in front of a convolution are padding of the convolution: nobody writes them or reads them
// back.
//   conv2d(pad(x), w) = conv2d(x, w) with more padding, and so the gradient by w;
//   the part of the gradient by pad(x) that is x's = the gradient by x.
// Frameworks that have no padding of four sides, and "same" padding of old, record it like that.
#include <array>
#include <optional>

#include "ir/passes/passes.h"
#include "ir/rewrite.h"

namespace fusejit::ir {
namespace {

// Rows and columns: top, left, bottom, right.
using Sides = std::array<std::int64_t, 4>;

// What a pad of rows and columns by zeros adds.
std::optional<Sides> zeros_around(const Node& node) {
  if (node.op != Op::pad || node.type.shape.rank() != 4 || node.attrs.number("value") != 0) return std::nullopt;
  const auto low = node.attrs.ints("low"), high = node.attrs.ints("high");
  if (low[0] + low[1] + high[0] + high[1] != 0) return std::nullopt;
  return Sides{low[2], low[3], high[2], high[3]};
}

// What a slice of rows and columns takes away.
std::optional<Sides> cut_away(const Node& node) {
  if (node.op != Op::slice || node.type.shape.rank() != 4) return std::nullopt;
  const auto starts = node.attrs.ints("starts"), stops = node.attrs.ints("stops"), steps = node.attrs.ints("steps");
  const Shape& from = node.operands[0].value.type().shape;
  for (int d = 0; d < 4; ++d) {
    const auto i = static_cast<std::size_t>(d);
    if (steps[i] != 1 || (d < 2 && (starts[i] != 0 || stops[i] != from[d]))) return std::nullopt;
  }
  return Sides{starts[2], starts[3], from[2] - stops[2], from[3] - stops[3]};
}

// The same convolution, or gradient of one, of `operands` with more padding.
Value padded(const Node& like, const Sides& more, std::vector<Operand> operands, const Type& type,
             std::uint32_t region) {
  Sides padding;
  for (std::size_t i = 0; i < 4; ++i) padding[i] = like.attrs.ints("padding")[i] + more[i];
  std::vector<AttrInit> attrs{{"stride", like.attrs.ints("stride")},
                              {"padding", std::span<const std::int64_t>(padding)},
                              {"dilation", like.attrs.ints("dilation")},
                              {"groups", like.attrs.integer("groups")}};
  const std::array<std::int64_t, 2> size{type.shape[2], type.shape[3]};
  if (like.op == Op::conv2d_input_grad) attrs.emplace_back("input_size", std::span<const std::int64_t>(size));
  if (like.op == Op::conv2d_weight_grad) attrs.emplace_back("kernel_size", like.attrs.ints("kernel_size"));
  return build_as(type, like.op, std::move(operands), std::move(attrs), region);
}

}  // namespace

Graph fold_padding(const Graph& graph) {
  std::vector<int> uses(static_cast<std::size_t>(graph.value_count()));
  for (int v = 0; v < graph.value_count(); ++v) {
    for (const int operand : graph.operands(v))
      if (operand >= 0) ++uses[static_cast<std::size_t>(operand)];
  }
  for (const Value& result : graph.results()) ++uses[static_cast<std::size_t>(graph.index_of(result.get()))];
  return rewrite(graph, [&](const Node& node, const std::vector<Operand>& operands) -> Value {
    if (node.op == Op::conv2d || node.op == Op::conv2d_weight_grad) {
      const auto more = zeros_around(*operands[0].value);
      return more ? padded(node, *more, {operands[0].value->operands[0], operands[1]}, node.type, node.region)
                  : Value();
    }
    const auto away = cut_away(node);
    if (!away || operands[0].value->op != Op::conv2d_input_grad) return {};
    // Only in its place, not beside it.
    if (uses[static_cast<std::size_t>(graph.index_of(node.operands[0].value.get()))] > 1) return {};
    return padded(*operands[0].value, *away, operands[0].value->operands, node.type, node.region);
  });
}

}  // namespace fusejit::ir
