// Layouts: every activation is NHWC, so that lanes run over channels (design: layouts; on the CPU NHWC is within 2
// points of blocked layouts, on CUDA fusing convolutions need it). Activations are what anchors and pools read or write
// as images, what is given in NHWC, and everything element-wise around them. Weights, their gradients and optimiser
// state keep the standard order, but around calls of cuDNN, which takes one layout for all; parameters and results
// bind.
#include <unordered_map>
#include <vector>

#include "ir/passes/passes.h"

namespace fusejit::ir {
namespace {

// Operands and result of an anchor or pool that are images [N,C,H,W] rather than weights.
bool result_is_image(const OpDef& row) { return row.images & 1u; }
bool operand_is_image(const OpDef& row, std::size_t i) { return row.images >> (i + 1) & 1u; }

bool is_elementwise_image(const Node& n) {
  return op_def(n.op).family == Family::elementwise && n.type.shape.rank() == 4;
}
std::size_t at(const Graph& graph, const Value& value) { return static_cast<std::size_t>(graph.index_of(value.get())); }

// Element-wise results that are read as matrices, after a flatten, and by nothing that wants an image: matrix products
// read rows many times, so these are written in rows, once, instead of being gathered by every reader.
std::vector<std::size_t> flattened(const Graph& graph) {
  struct Readers {
    bool flatten = false, image = false;
  };
  std::vector<Readers> readers(static_cast<std::size_t>(graph.value_count()));
  for (int v = static_cast<int>(graph.parameters().size()); v < graph.value_count(); ++v) {
    const Node& node = *graph.value(v);
    const bool flatten = node.op == Op::reshape && node.type.shape.rank() < 4;
    const bool image = !flatten && op_def(node.op).family != Family::elementwise;
    if (!flatten && !image) continue;
    for (const int operand : graph.operands(v)) {
      if (operand < 0) continue;
      Readers& known = readers[static_cast<std::size_t>(operand)];
      known.flatten |= flatten, known.image |= image;
    }
  }
  std::vector<std::size_t> result;
  for (std::size_t v = 0; v < readers.size(); ++v) {
    if (readers[v].flatten && !readers[v].image && is_elementwise_image(*graph.value(static_cast<int>(v))))
      result.push_back(v);
  }
  return result;
}

// By value.
std::vector<bool> activations(const Graph& graph) {
  std::vector<bool> images(static_cast<std::size_t>(graph.value_count()));
  for (std::size_t p = 0; p < graph.parameters().size(); ++p)
    images[p] = graph.parameters()[p].type().layout == Layout::nhwc;
  const auto same_shape = [](const Node& a, const Node& b) { return a.type.shape == b.type.shape; };
  const std::size_t first = graph.parameters().size();
  for (std::size_t v = first; v < images.size(); ++v) {
    const Node& node = *graph.nodes()[v - first];
    const OpDef& row = op_def(node.op);
    if (row.images == 0) continue;
    if (result_is_image(row)) images[v] = true;
    for (std::size_t i = 0; i < node.operands.size(); ++i) {
      if (operand_is_image(row, i) && !node.operands[i].is_number()) images[at(graph, node.operands[i].value)] = true;
    }
  }
  // Element-wise neighbours of the same shape, forward then backward: two sweeps reach every chain.
  for (std::size_t v = first; v < images.size(); ++v) {
    const Node& node = *graph.nodes()[v - first];
    if (images[v] || !is_elementwise_image(node)) continue;
    for (const Operand& operand : node.operands) {
      if (!operand.is_number() && images[at(graph, operand.value)] && same_shape(*operand.value, node))
        images[v] = true;
    }
  }
  for (std::size_t v = images.size(); v-- > first;) {
    const Node& node = *graph.nodes()[v - first];
    if (!images[v] || !is_elementwise_image(node)) continue;
    for (const Operand& operand : node.operands) {
      if (!operand.is_number() && same_shape(*operand.value, node)) images[at(graph, operand.value)] = true;
    }
  }
  for (const std::size_t v : flattened(graph)) images[v] = false;
  return images;
}

// The value itself, or a copy of it in that layout; one copy serves every reader.
using Copies = std::unordered_map<const Node*, Value>;
Value in_nhwc(const Value& value, Copies& copies) {
  if (lies_as_nhwc(value.type())) return value;
  Value& copy = copies[value.get()];
  if (!copy) {
    Origin origin = current_origin();  // of the reader
    origin.op = kNewLayout, origin.role = Role::forward;
    const OriginScope scope(origin);
    const auto dims = value.type().shape.dims();
    const Value same =
        build(Op::reshape, {value}, {{"shape", std::span<const std::int64_t>(dims.data(), dims.size())}});
    copy = build_in(Layout::nhwc, Op::reshape, {value}, same->attrs);
  }
  return copy;
}

}  // namespace

bool lies_as_nhwc(const Type& type) {
  if (type.shape.rank() != 4) return false;
  return type.layout == Layout::nhwc || type.shape[1] == 1 || type.shape[2] * type.shape[3] == 1;
}

bool suits_library(const Node& node, const Target& target) {
  const OpDef& row = op_def(node.op);
  if (target.cudnn == CudnnMode::off || !row.is_contraction() || row.matrix) return false;
  if (target.strict_f32 && node.type.dtype == DType::f32) return false;
  const Type& weight = result_is_image(row) ? node.operands[1].value.type() : node.type;
  return node.attrs.integer("groups") == 1 || weight.shape[1] > 1;
}

Graph choose_layouts(const Graph& graph, const Target& target) {
  const std::vector<bool> images = activations(graph);
  std::vector<bool> bound(images.size());
  for (const Value& result : graph.results()) bound[at(graph, result)] = true;
  std::vector<Value> now = graph.parameters();
  now.reserve(images.size());
  bool changed = false;
  Copies copies;
  for (const Value& value : graph.nodes()) {
    const Node& node = *value;
    const OriginScope scope(node);
    const bool library = suits_library(node, target);
    Layout layout = node.type.layout;
    if (node.type.shape.rank() == 4 && !bound[now.size()])
      layout = library || images[now.size()] ? Layout::nhwc : Layout::standard;
    changed |= library || layout != node.type.layout;
    if (!changed) {
      now.push_back(value);
      continue;
    }
    std::vector<Operand> operands = node.operands;
    for (Operand& operand : operands) {
      if (!operand.is_number()) operand.value = now[at(graph, operand.value)];
      if (library) operand.value = in_nhwc(operand.value, copies);
    }
    now.push_back(build_in(layout, node.op, std::move(operands), node.attrs, node.region));
  }
  if (!changed) return graph;
  std::vector<Value> results;
  for (const Value& result : graph.results()) results.push_back(now[at(graph, result)]);
  return capture(graph.name(), graph.parameters(), std::move(results));
}

}  // namespace fusejit::ir
