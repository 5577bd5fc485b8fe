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

void copy_into_region(std::span<const Value> values, std::uint32_t region,
                      std::unordered_map<const Node*, Value>& copies) {
  for (const Value& value : values) {
    if (copies.contains(value.get())) continue;
    if (value->op == Op::parameter) {
      copies.emplace(value.get(), value);
      continue;
    }
    std::vector<Operand> operands = value->operands;
    for (Operand& operand : operands)
      if (operand.value) operand.value = copies.at(operand.value.get());
    const OriginScope scope(value->origin);
    copies.emplace(value.get(), build_in(value->type.layout, value->op, std::move(operands), value->attrs, region));
  }
}

std::vector<Value> recompute_in_region(std::span<const Value> values, std::uint32_t region,
                                       std::span<const Value> boundary) {
  std::unordered_set<const Node*> stop;
  std::unordered_map<const Node*, Value> copies;
  for (const Value& value : boundary)
    if (value && stop.insert(value.get()).second) copies.emplace(value.get(), value);
  copy_into_region(needed_values(values, stop), region, copies);
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

namespace {

class LateWalk {
 public:
  LateWalk(const Graph& graph, const LateReads& reads) : graph_(graph), reads_(reads) {}

  Graph run() {
    for (const Value& value : graph_.nodes()) visit(*value);
    std::vector<Value> results;
    for (const Value& result : graph_.results()) results.push_back(is_early(*result) ? result : late(result));
    return capture(graph_.name(), graph_.parameters(), std::move(results));
  }

 private:
  bool is_early(const Node& node) const { return reads_.early.contains(&node); }
  Value late(const Value& value) const {
    const auto found = late_.find(value.get());
    return found == late_.end() ? value : found->second;
  }

  void visit(const Node& node) {
    if (is_early(node)) {
      if (Value again = reads_.again(node, [&] { return anew(node); })) {
        late_.emplace(&node, std::move(again)), ends_.insert(&node);
        return;
      }
      if (reads_.stays(node)) {
        ends_.insert(&node);
        return;
      }
    }
    std::vector<Operand> operands = node.operands;
    bool changed = false;
    std::uint32_t region = node.region;
    for (std::size_t i = 0; i < operands.size(); ++i) {
      if (operands[i].is_number()) continue;
      operands[i].value = late(operands[i].value);
      if (operands[i].value == node.operands[i].value) continue;
      changed = true;
      if (is_early(node)) region = operands[i].value->region;
    }
    if (!changed) return;
    const OriginScope scope(node);
    late_.emplace(&node, build_in(node.type.layout, node.op, std::move(operands), node.attrs, region));
    ends_.insert(&node);
  }

  // Operands that share nothing with what early readers compute: else that would have one more reader and be stored.
  std::vector<Operand> anew(const Node& node) {
    std::vector<Value> wanted;
    for (const Operand& operand : node.operands)
      if (operand.value) wanted.push_back(operand.value);
    for (const Value& value : needed_values(wanted, ends_)) {
      if (ends_.contains(value.get()) || value->op == Op::parameter) continue;
      const OriginScope scope(*value);
      anew_.emplace(value.get(),
                    build_in(value->type.layout, value->op, replaced(*value), value->attrs, reads_.region));
      ends_.insert(value.get());
    }
    return replaced(node);
  }
  std::vector<Operand> replaced(const Node& node) const {
    std::vector<Operand> operands = node.operands;
    for (Operand& operand : operands) {
      if (operand.is_number()) continue;
      const auto found = anew_.find(operand.value.get());
      operand.value = found == anew_.end() ? late(operand.value) : found->second;
    }
    return operands;
  }

  const Graph& graph_;
  const LateReads& reads_;
  std::unordered_map<const Node*, Value> late_;  // what late readers read in place of a node
  std::unordered_map<const Node*, Value> anew_;  // what values that are computed again read in place of one
  std::unordered_set<const Node*> ends_;         // nothing in front of these is computed anew
};

}  // namespace

Graph with_late_reads(const Graph& graph, const LateReads& reads) { return LateWalk(graph, reads).run(); }

}  // namespace fusejit::ir
