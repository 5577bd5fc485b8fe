// Masks of a relu (rule R8): where(x <= 0, 0, dy) and where(maximum(x, 0) <= 0, 0, dy) are the same, bit for bit and
// for NaN too. Which of the two is read decides what is alive until the backward pass.
//
// As recorded the mask asks x. Behind a batch-norm that is best: x is recomputed, element by element, from the
// convolution's output, which the backward pass reads anyway. But where all that x comes from would be stored for the
// mask alone (behind a convolution with bias, a pool, a matrix product), the relu's output, which the next layer keeps
// in any case, takes its place, and x dies at once; unless it lies in another layout, such as in front of a flatten:
// then whoever computes x keeps the mask (scheduler/fuse/masks.h).
#include <algorithm>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "ir/passes/passes.h"

namespace fusejit::ir {
namespace {

bool is_zero(const Operand& operand) { return operand.is_number() && operand.number == 0; }
bool compares_with_zero(const Node& node) {
  return (node.op == Op::le || node.op == Op::gt) && !node.operands[0].is_number() && is_zero(node.operands[1]);
}
// The operand of maximum(x, 0), or null.
const Node* relu_operand(const Node& node) {
  const bool relu = node.op == Op::maximum && !node.operands[0].is_number() && is_zero(node.operands[1]);
  return relu && is_float(node.type.dtype) ? node.operands[0].value.get() : nullptr;
}

class Masks {
 public:
  explicit Masks(const Graph& graph) : graph_(graph) {
    for (const Value& value : graph.nodes())
      if (const Node* x = relu_operand(*value)) relus_.emplace(x, value);
  }

  // The relu whose output this comparison should read; null if it is fine as it is.
  const Value* better(const Node& node) {
    if (!compares_with_zero(node)) return nullptr;
    const auto relu = relus_.find(node.operands[0].value.get());
    const bool lies_alike = relu != relus_.end() && relu->second->type.layout == node.type.layout;
    return lies_alike && kept_for_masks(relu->first) ? &relu->second : nullptr;
  }

 private:
  // True if something that x is computed from, of its size, has no other use than the relu and its masks.
  bool kept_for_masks(const Node* x) {
    find_users();
    std::unordered_set<const Node*> cone{x};  // x and what it is computed from, element by element
    std::vector<const Node*> open{x}, leaves;
    while (!open.empty()) {
      const Node* node = open.back();
      open.pop_back();
      if (op_def(node->op).family != Family::elementwise) {
        if (node->op != Op::parameter && node->type.shape.elements() == x->type.shape.elements())
          leaves.push_back(node);
        continue;
      }
      for (const Operand& operand : node->operands) {
        if (!operand.is_number() && cone.insert(operand.value.get()).second) open.push_back(operand.value.get());
      }
    }
    const auto used_elsewhere = [&](const Node* node) {
      const auto v = static_cast<std::size_t>(graph_.index_of(node));
      return is_result_[v] || std::any_of(users_[v].begin(), users_[v].end(), [&](const Node* user) {
               const bool own = cone.count(user) || (node == x && (relu_operand(*user) || compares_with_zero(*user)));
               return !own;
             });
    };
    // Where x itself, or a step on the way to it, is needed too, so is what it is computed from.
    if (op_def(x->op).family == Family::elementwise && std::any_of(cone.begin(), cone.end(), [&](const Node* node) {
          return op_def(node->op).family == Family::elementwise && used_elsewhere(node);
        })) {
      return false;
    }
    return std::any_of(leaves.begin(), leaves.end(), [&](const Node* leaf) { return !used_elsewhere(leaf); });
  }
  // Only graphs with masks need to know.
  void find_users() {
    if (!users_.empty()) return;
    users_.resize(static_cast<std::size_t>(graph_.value_count())), is_result_.resize(users_.size());
    for (int v = 0; v < graph_.value_count(); ++v) {
      for (const int operand : graph_.operands(v)) {
        if (operand >= 0) users_[static_cast<std::size_t>(operand)].push_back(graph_.value(v).get());
      }
    }
    for (const Value& result : graph_.results())
      is_result_[static_cast<std::size_t>(graph_.index_of(result.get()))] = true;
  }

  const Graph& graph_;
  std::unordered_map<const Node*, Value> relus_;  // by x
  std::vector<std::vector<const Node*>> users_;   // by value
  std::vector<bool> is_result_;                   // by value
};

}  // namespace

Graph masks_from_outputs(const Graph& graph) {
  Masks masks(graph);
  std::vector<const Value*> better;  // by node
  for (const Value& value : graph.nodes()) better.push_back(masks.better(*value));
  if (std::all_of(better.begin(), better.end(), [](const Value* relu) { return !relu; })) return graph;
  std::unordered_map<const Node*, Value> replaced;
  for (const Value& parameter : graph.parameters()) replaced.emplace(parameter.get(), parameter);
  const auto rebuild = [&](const Value& value, std::vector<Operand> operands) {
    for (Operand& operand : operands) {
      if (!operand.is_number()) operand.value = replaced.at(operand.value.get());
    }
    const OriginScope scope(*value);
    replaced.emplace(value.get(),
                     build_in(value->type.layout, value->op, std::move(operands), value->attrs, value->region));
  };
  for (std::size_t i = 0; i < better.size(); ++i) {
    const Value& value = graph.nodes()[i];
    if (replaced.count(value.get())) continue;
    std::vector<Operand> operands = value->operands;
    if (const Value* relu = better[i]) {
      if (!replaced.count(relu->get())) rebuild(*relu, (*relu)->operands);  // its operand is the mask's: it is there
      operands[0] = *relu;
    }
    rebuild(value, std::move(operands));
  }
  std::vector<Value> results;
  for (const Value& result : graph.results()) results.push_back(replaced.at(result.get()));
  return capture(graph.name(), graph.parameters(), std::move(results));
}

}  // namespace fusejit::ir
