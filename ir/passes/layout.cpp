// Layouts: every activation is NHWC, so that lanes run over channels (design: layouts; on the CPU NHWC is within 2
// points of blocked layouts, on CUDA fusing convolutions need it). Activations are what anchors and pools read or write
// as images, what is given in NHWC, and everything element-wise around them. Weights, their gradients and optimiser
// state keep the standard order, but around calls of cuDNN, which takes one layout for all; parameters and results
// bind.
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "ir/passes/passes.h"

namespace fusejit::ir {
namespace {

// Operands and result of an anchor or pool that are images [N,C,H,W] rather than weights.
bool result_is_image(const OpDef& row) { return row.images & 1u; }
bool operand_is_image(const OpDef& row, std::size_t i) { return row.images >> (i + 1) & 1u; }

// Element-wise results that are read as matrices, after a flatten, and by nothing that wants an image: matrix products
// read rows many times, so these are written in rows, once, instead of being gathered by every reader.
std::vector<const Node*> flattened(const Graph& graph) {
  struct Readers {
    bool flatten = false, image = false;
  };
  std::unordered_map<const Node*, Readers> readers;
  for (const Value& value : graph.nodes()) {
    const bool flatten = value->op == Op::reshape && value->type.shape.rank() < 4;
    for (const Operand& operand : value->operands) {
      if (operand.is_number()) continue;
      Readers& known = readers[operand.value.get()];
      known.flatten |= flatten;
      known.image |= !flatten && op_def(value->op).family != Family::elementwise;
    }
  }
  std::vector<const Node*> result;
  for (const Value& value : graph.nodes()) {
    const Readers& known = readers[value.get()];
    const bool elementwise = op_def(value->op).family == Family::elementwise && value->type.shape.rank() == 4;
    if (elementwise && known.flatten && !known.image) result.push_back(value.get());
  }
  return result;
}

std::unordered_set<const Node*> activations(const Graph& graph) {
  std::unordered_set<const Node*> images;
  for (const Value& parameter : graph.parameters()) {
    if (parameter.type().layout == Layout::nhwc) images.insert(parameter.get());
  }
  const auto same_shape = [](const Node& a, const Node& b) { return a.type.shape == b.type.shape; };
  for (const Value& value : graph.nodes()) {
    const OpDef& row = op_def(value->op);
    if (row.images == 0) continue;
    if (result_is_image(row)) images.insert(value.get());
    for (std::size_t i = 0; i < value->operands.size(); ++i) {
      if (operand_is_image(row, i) && !value->operands[i].is_number()) images.insert(value->operands[i].value.get());
    }
  }
  // Element-wise neighbours of the same shape, forward then backward: two sweeps reach every chain.
  const auto elementwise = [](const Node& n) {
    return op_def(n.op).family == Family::elementwise && n.type.shape.rank() == 4;
  };
  for (const Value& value : graph.nodes()) {
    if (!elementwise(*value) || images.count(value.get())) continue;
    for (const Operand& operand : value->operands) {
      if (!operand.is_number() && images.count(operand.value.get()) && same_shape(*operand.value, *value))
        images.insert(value.get());
    }
  }
  for (auto it = graph.nodes().rbegin(); it != graph.nodes().rend(); ++it) {
    if (!elementwise(**it) || !images.count(it->get())) continue;
    for (const Operand& operand : (*it)->operands) {
      if (!operand.is_number() && same_shape(*operand.value, **it)) images.insert(operand.value.get());
    }
  }
  for (const Node* node : flattened(graph)) images.erase(node);
  return images;
}

// The value itself, or a copy of it in that layout; one copy serves every reader.
using Copies = std::unordered_map<const Node*, Value>;
Value in_nhwc(const Value& value, Copies& copies) {
  if (value.type().layout == Layout::nhwc) return value;
  Value& copy = copies[value.get()];
  if (!copy) {
    const auto dims = value.type().shape.dims();
    const Value same =
        build(Op::reshape, {value}, {{"shape", std::span<const std::int64_t>(dims.data(), dims.size())}});
    copy = build_in(Layout::nhwc, Op::reshape, {value}, same->attrs);
  }
  return copy;
}

}  // namespace

bool suits_library(const Node& node, const Target& target) {
  const OpDef& row = op_def(node.op);
  if (target.cudnn == 0 || !row.tiled || row.matrix) return false;
  const Type& weight = result_is_image(row) ? node.operands[1].value.type() : node.type;
  return node.attrs.integer("groups") == 1 || weight.shape[1] > 1;
}

Graph choose_layouts(const Graph& graph, const Target& target) {
  const std::unordered_set<const Node*> images = activations(graph);
  std::unordered_set<const Node*> bound;
  for (const Value& result : graph.results()) bound.insert(result.get());
  std::unordered_map<const Node*, Value> replaced;
  Copies copies;
  for (const Value& parameter : graph.parameters()) replaced.emplace(parameter.get(), parameter);
  for (const Value& value : graph.nodes()) {
    const Node& node = *value;
    const bool library = suits_library(node, target);
    Layout layout = node.type.layout;
    if (node.type.shape.rank() == 4 && !bound.count(&node)) {
      layout = library || images.count(&node) ? Layout::nhwc : Layout::standard;
    }
    std::vector<Operand> operands = node.operands;
    for (Operand& operand : operands) {
      if (!operand.is_number()) operand.value = replaced.at(operand.value.get());
      if (library) operand.value = in_nhwc(operand.value, copies);
    }
    replaced.emplace(&node, build_in(layout, node.op, std::move(operands), node.attrs, node.region));
  }
  std::vector<Value> results;
  for (const Value& result : graph.results()) results.push_back(replaced.at(result.get()));
  return capture(graph.name(), graph.parameters(), std::move(results));
}

}  // namespace fusejit::ir
