#include "ir/passes/recompute.h"

#include <algorithm>
#include <unordered_map>

#include "ir/base/check.h"

namespace fusejit::ir {

std::vector<Value> needed_values(std::span<const Value> roots, const std::unordered_set<const Node*>& boundary) {
  struct Frame {
    Value value;
    std::size_t next = 0;  // operand to enter
  };
  std::vector<Value> order;
  std::unordered_set<const Node*> seen;
  std::vector<Frame> stack;
  for (const Value& root : roots) {
    if (root && seen.insert(root.get()).second) stack.push_back({root});
    while (!stack.empty()) {
      Frame& top = stack.back();
      const bool is_leaf = boundary.contains(top.value.get());
      if (is_leaf || top.next == top.value->operands.size()) {
        order.push_back(std::move(top.value));
        stack.pop_back();
        continue;
      }
      const Value& operand = top.value->operands[top.next++].value;
      if (operand && seen.insert(operand.get()).second) stack.push_back({operand});
    }
  }
  return order;
}

std::vector<Value> recompute_in_region(std::span<const Value> values, std::uint32_t region,
                                       std::span<const Value> boundary) {
  std::unordered_set<const Node*> stop;
  for (const Value& value : boundary)
    if (value) stop.insert(value.get());
  std::unordered_map<const Node*, Value> copies;
  for (const Value& value : needed_values(values, stop)) {
    if (value->op == Op::parameter || stop.contains(value.get())) {
      copies.emplace(value.get(), value);
      continue;
    }
    std::vector<Operand> operands = value->operands;
    for (Operand& operand : operands)
      if (operand.value) operand.value = copies.at(operand.value.get());
    const OriginScope scope(value->origin);
    copies.emplace(value.get(), build_in(value->type.layout, value->op, std::move(operands), value->attrs, region));
  }
  std::vector<Value> results;
  for (const Value& value : values) results.push_back(value ? copies.at(value.get()) : Value());
  return results;
}

Value recompute_in_region(const Value& value, std::uint32_t region, std::span<const Value> boundary) {
  return recompute_in_region(std::span(&value, 1), region, boundary)[0];
}

std::uint32_t fresh_region(std::span<const Value> values) {
  std::uint32_t highest = 0;
  for (const Value& value : needed_values(values)) highest = std::max(highest, value->region);
  FJ_ASSERT(highest != UINT32_MAX, "no region number is left");
  return highest + 1;
}

namespace {

bool same_operands(const Node& a, const Node& b) {
  for (std::size_t i = 0; i < a.operands.size(); ++i) {
    if (a.operands[i].is_number() != b.operands[i].is_number() || a.operands[i].value != b.operands[i].value)
      return false;
  }
  return a.operands.size() == b.operands.size();
}

}  // namespace

std::unordered_map<const Node*, Value> recomputed_anchors(const Graph& graph) {
  std::unordered_map<const Node*, Value> found;
  std::unordered_map<std::uint64_t, std::vector<const Node*>> forward;  // by first operand's serial
  const auto key = [](const Node& node) { return node.operands[0].value->serial; };
  for (const Value& value : graph.nodes()) {
    if (!op_def(value->op).is_contraction()) continue;
    if (value->region == 0) {
      forward[key(*value)].push_back(value.get());
      continue;
    }
    for (const Node* candidate : forward[key(*value)]) {
      if (candidate->op == value->op && candidate->attrs == value->attrs && same_operands(*candidate, *value)) {
        found.emplace(candidate, value);
      }
    }
  }
  return found;
}

}  // namespace fusejit::ir
