#include "runtime/cudnn/graph/activation.h"

#include "ir/op.h"
#include "ir/passes/passes.h"

namespace fusejit::runtime::cudnn {
namespace {

// A number that no program has: where a pattern has it, any will do.
constexpr double kAnySlope = 0.7362951873;

struct Row {
  Activation activation;
  ir::Op op;
  const char* attribute = nullptr;  // that is not the default
  double number = 0;
  const char* word = nullptr;
};
constexpr Row kRows[] = {
    {Activation::relu, ir::Op::relu},         {Activation::relu6, ir::Op::relu6},
    {Activation::sigmoid, ir::Op::sigmoid},   {Activation::tanh, ir::Op::tanh},
    {Activation::silu, ir::Op::silu},         {Activation::elu, ir::Op::elu},
    {Activation::gelu, ir::Op::gelu},         {Activation::gelu_tanh, ir::Op::gelu, "approximate", 0, "tanh"},
    {Activation::softplus, ir::Op::softplus}, {Activation::leaky_relu, ir::Op::leaky_relu, "negative_slope", kAnySlope},
};

// The row's op on a parameter, as primitive ops.
ir::Graph pattern_of(const Row& row, DType dtype) {
  const ir::Value x = ir::parameter(Type{dtype, Shape{2}, Layout::standard}, "x");
  std::vector<ir::AttrInit> attributes;
  if (row.attribute && row.word) attributes.push_back({row.attribute, row.word});
  if (row.attribute && !row.word) attributes.push_back({row.attribute, row.number});
  return ir::simplify(ir::expand(ir::capture("pattern", {x}, {ir::build(row.op, {x}, std::move(attributes))})));
}

bool matches(const ir::Node& pattern, const ir::Node& node, FoundActivation& found);

bool matches(const ir::Operand& pattern, const ir::Operand& operand, FoundActivation& found) {
  if (pattern.is_number() != operand.is_number()) return false;
  if (!pattern.is_number()) return matches(*pattern.value, *operand.value, found);
  if (pattern.number != kAnySlope) return pattern.number == operand.number;
  found.slope = static_cast<float>(operand.number);
  return true;
}

// Recursion is bounded by the pattern.
bool matches(const ir::Node& pattern, const ir::Node& node, FoundActivation& found) {
  if (pattern.type.dtype != node.type.dtype) return false;
  if (pattern.op == ir::Op::parameter) {
    if (!found.input) found.input = &node;
    return found.input == &node;
  }
  if (pattern.op != node.op || pattern.operands.size() != node.operands.size() || !(pattern.attrs == node.attrs))
    return false;
  const FoundActivation before = found;
  const std::size_t count = pattern.operands.size();
  for (const bool swapped : {false, true}) {
    if (swapped && (count != 2 || !ir::op_def(node.op).commutative)) break;
    found = before;
    bool all = true;
    for (std::size_t i = 0; i < count && all; ++i) {
      all = matches(pattern.operands[i], node.operands[swapped ? count - 1 - i : i], found);
    }
    if (all) return true;
  }
  return false;
}

}  // namespace

std::optional<FoundActivation> find_activation(const ir::Node& node) {
  for (const Row& row : kRows) {
    const ir::Graph pattern = pattern_of(row, node.type.dtype);
    FoundActivation found{.activation = row.activation};
    if (matches(*pattern.results()[0], node, found)) return found;
  }
  return std::nullopt;
}

}  // namespace fusejit::runtime::cudnn
