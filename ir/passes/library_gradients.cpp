// Input gradients of a convolution as engines that a library compiles take them together with what follows (cuDNN, see
// docs/cudnn.md). Both are the same values, bit for bit, said in another way:
// - A mask in memory says what passes, not what does not:
//     where(m, 0, dy) = where(logical_not(m), dy, 0)        m of a relu is le(x, 0), so that NaN passes
//   Not where m asks the output of a relu, which the library reads itself.
// - Sums over a channel are f32:
//     sum(v) = cast(sum(cast(v, f32)), v's dtype)       for v of 16 bits, whose sums are made in f32 as it is
#include <algorithm>

#include "ir/passes/passes.h"
#include "ir/rewrite.h"

namespace fusejit::ir {

namespace {

bool is_nought(const Operand& operand) { return operand.is_number() && operand.number == 0; }

const Node* node_of(const Operand& operand) { return operand.is_number() ? nullptr : operand.value.get(); }

bool is_gradient(const Node* node, const Target& target) {
  return node && node->op == Op::conv2d_input_grad && suits_library(*node, target);
}
// The gradient by itself, or with what else flows into the same value.
bool is_sum_with_gradient(const Node* node, const Target& target) {
  if (is_gradient(node, target)) return true;
  return node && node->op == Op::add &&
         (is_gradient(node_of(node->operands[0]), target) || is_gradient(node_of(node->operands[1]), target));
}

// where(m, 0, gradient), m computed of anything but a relu's output.
bool has_mask_of_input(const Node& node, const Target& target) {
  const Node* mask = node_of(node.operands[0]);
  if (!mask || mask->op == Op::parameter || !is_nought(node.operands[1])) return false;
  return !asks_output(*mask) && is_sum_with_gradient(node_of(node.operands[2]), target);
}

// The masked gradient: in either form, of which the second is what the first was rewritten to.
bool is_masked(const Node* node, const Target& target) {
  if (!node || node->op != Op::where) return false;
  if (is_nought(node->operands[1])) return is_sum_with_gradient(node_of(node->operands[2]), target);
  return is_nought(node->operands[2]) && is_sum_with_gradient(node_of(node->operands[1]), target);
}

bool sums_channels(const Node& node) {
  return reduces_to_channels(node) && bits(node.type.dtype) == 16 &&
         node.operands[0].value.type().dtype == node.type.dtype;
}

Value as_type(const Value& value, DType to, std::uint32_t region) {
  return build_as(Type{to, value.type().shape, value.type().layout}, Op::cast, {value}, {{"dtype", to}}, region);
}

}  // namespace

bool reduces_to_channels(const Node& reduction) {
  const auto dims = reduction.attrs.ints("dim");
  return reduction.operands[0].value.type().shape.rank() == 4 &&
         std::equal(dims.begin(), dims.end(), kAllButChannels.begin(), kAllButChannels.end());
}

bool asks_output(const Node& mask) {
  if ((mask.op != Op::le && mask.op != Op::gt) || !is_nought(mask.operands[1])) return false;
  const Node* compared = node_of(mask.operands[0]);
  return compared && (compared->op == Op::maximum || compared->op == Op::parameter);
}

Graph gradients_for_library(const Graph& graph, const Target& target) {
  if (target.cudnn != CudnnMode::compiled) return graph;
  return rewrite(graph, [&](const Node& node, const std::vector<Operand>& operands) -> Value {
    if (node.op == Op::where && has_mask_of_input(node, target)) {
      const Value& mask = operands[0].value;
      Value passes;
      {
        const OriginScope scope(origin_of_replacement(*node.operands[0].value));  // whoever stores the mask says so
        passes = build_as(mask.type(), Op::logical_not, {mask}, {}, node.region);
      }
      return build_as(node.type, Op::where, {passes, operands[2], 0}, {}, node.region);
    }
    if (node.op == Op::sum && sums_channels(node)) {
      const Node* summed = node.operands[0].value.get();
      if (!is_sum_with_gradient(summed, target) && !is_masked(summed, target)) return {};
      const bool keeps = node.attrs.flag("keepdim");
      const Value sum = build_as(Type{DType::f32, node.type.shape, node.type.layout}, Op::sum,
                                 {as_type(operands[0].value, DType::f32, node.region)},
                                 {{"dim", std::span(kAllButChannels)}, {"keepdim", keeps}}, node.region);
      return as_type(sum, node.type.dtype, node.region);
    }
    return {};
  });
}

}  // namespace fusejit::ir
