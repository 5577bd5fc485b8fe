#include "frontend/evaluation/trace.h"

#include <bit>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "ir/base/check.h"

namespace fusejit {
namespace {

// Numbers of nodes: an entry's from 0 upwards, a leaf's from kFirstLeaf downwards.
constexpr int kUnknown = -1, kFirstLeaf = -2;

bool ends_walk(const ir::Node* node) { return evaluated(node) || (node->op == ir::Op::parameter && !deferred(node)); }

// What a node that is to be computed is computed from, one after the other; empty at the end and for numbers.
const ir::Value* operand(const ir::Node* node, std::size_t i) {
  if (deferred(node)) return i == 0 ? &source_of(node) : nullptr;
  return i < node->operands.size() ? &node->operands[i].value : nullptr;
}

// One word that no op starts with, then the dims.
void append_type(std::vector<std::uint64_t>& words, const Type& type) {
  words.push_back(static_cast<std::uint64_t>(ir::Op::parameter) | static_cast<std::uint64_t>(type.dtype) << 16 |
                  static_cast<std::uint64_t>(type.layout) << 24 | static_cast<std::uint64_t>(type.shape.rank()) << 32);
  for (const std::int64_t d : type.shape) words.push_back(static_cast<std::uint64_t>(d));
}

}  // namespace

NodeNumbers::NodeNumbers() : entries_(64) {}

std::size_t NodeNumbers::place(const ir::Node* node) const {
  const auto bits = reinterpret_cast<std::uintptr_t>(node);
  return (bits >> 4) * 0x9e3779b97f4a7c15ull >> (64 - std::countr_zero(entries_.size()));
}

int NodeNumbers::find(const ir::Node* node) const {
  for (std::size_t at = place(node);; at = (at + 1) & (entries_.size() - 1)) {
    if (entries_[at].node == node) return entries_[at].number;
    if (!entries_[at].node) return -1;
  }
}

void NodeNumbers::add(const ir::Node* node, int number) {
  if (2 * ++used_ > entries_.size()) {
    const std::vector<Entry> old = std::exchange(entries_, std::vector<Entry>(entries_.size() * 4));
    used_ = 1;
    for (const Entry& entry : old) {
      if (entry.node) add(entry.node, entry.number);
    }
  }
  std::size_t at = place(node);
  while (entries_[at].node) at = (at + 1) & (entries_.size() - 1);
  entries_[at] = {node, number};
}

int Trace::number_of(const ir::Node* node) const {
  const int number = numbers_.find(node);
  return number <= kFirstLeaf ? leaves_[static_cast<std::size_t>(kFirstLeaf - number)].number : number;
}

std::int32_t& Trace::held(const ir::Node* node) {
  const int number = numbers_.find(node);
  return number <= kFirstLeaf ? leaves_[static_cast<std::size_t>(kFirstLeaf - number)].held
                              : entries_[static_cast<std::size_t>(number)].held;
}

void Trace::use(const ir::Node* node) {
  ++held(node);
  ++entries_[static_cast<std::size_t>(number_of(node))].uses;
}

void Trace::add_result(const ir::Value& value) {
  struct Frame {
    const ir::Node* node;
    std::size_t next;
  };
  std::vector<Frame> stack;
  const auto visit = [&](const ir::Node* node) {
    if (numbers_.find(node) != kUnknown) return;
    if (ends_walk(node)) {
      numbers_.add(node, static_cast<int>(entries_.size()));
      arguments_.push_back(static_cast<int>(entries_.size()));
      entries_.push_back({node, true, 0, 0});
    } else {
      stack.push_back({node, 0});
    }
  };
  visit(value.get());
  while (!stack.empty()) {
    Frame& top = stack.back();
    if (const ir::Value* next = operand(top.node, top.next)) {
      ++top.next;
      if (*next) visit(next->get());  // may move the stack: `top` is not used again in this turn
      continue;
    }
    const ir::Node* node = top.node;
    stack.pop_back();
    if (numbers_.find(node) != kUnknown) continue;  // pushed twice before its turn
    if (deferred(node)) {
      const ir::Node* source = sources_.emplace_back(source_of(node)).get();
      held(source) += 2;  // by the leaf and by `sources_`
      const int number = number_of(source);
      numbers_.add(node, kFirstLeaf - static_cast<int>(leaves_.size()));
      leaves_.push_back({node, number, 0});
      continue;
    }
    numbers_.add(node, static_cast<int>(entries_.size()));
    entries_.push_back({node, false, 0, 0});
    for (const ir::Operand& operand : node->operands) {
      if (operand.value) use(operand.value.get());
    }
  }
  use(value.get());
  results_.push_back(value);
}

bool Trace::shares(const ir::Value& value, const Trace& later) const {
  bool found = false;
  std::unordered_set<const ir::Node*> seen;
  std::vector<const ir::Node*> stack{value.get()};
  while (!stack.empty()) {
    const ir::Node* node = stack.back();
    stack.pop_back();
    if (!seen.insert(node).second) continue;
    if (number_of(node) >= 0) {
      // A common host scalar or seed is no common work; a common tensor is.
      found |= node->type.shape.rank() > 0;
      if (found && later.results_.empty()) return true;
      continue;
    }
    if (ends_walk(node)) continue;
    if (later.number_of(node) >= 0) return false;
    for (std::size_t i = 0; const ir::Value* next = operand(node, i); ++i) {
      if (*next) stack.push_back(next->get());
    }
  }
  return found;
}

std::vector<ir::Value> Trace::open_leaves(const ir::Value& value, const Trace& later) const {
  std::vector<ir::Value> found;
  std::unordered_set<const ir::Node*> seen;
  std::vector<ir::Value> stack{deferred(value.get()) ? source_of(value.get()) : value};
  while (!stack.empty()) {
    const ir::Value at = std::move(stack.back());
    stack.pop_back();
    const ir::Node* node = at.get();
    if (!seen.insert(node).second || number_of(node) >= 0 || later.number_of(node) >= 0 || ends_walk(node)) continue;
    if (deferred(node)) {
      found.push_back(at);
      continue;
    }
    for (const ir::Operand& operand : node->operands) {
      if (operand.value) stack.push_back(operand.value);
    }
  }
  return found;
}

std::vector<std::uint32_t> Trace::dense_regions() const {
  std::unordered_map<std::uint32_t, std::uint32_t> dense{{0, 0}};
  std::vector<std::uint32_t> regions(entries_.size());
  std::uint32_t last_region = 0, last = 0;
  for (std::size_t i = 0; i < entries_.size(); ++i) {
    const std::uint32_t region = entries_[i].argument ? 0 : entries_[i].node->region;
    if (region != last_region) {
      last_region = region;
      last = dense.try_emplace(region, static_cast<std::uint32_t>(dense.size())).first->second;
    }
    regions[i] = last;
  }
  return regions;
}

ir::Hash Trace::key() const {
  const std::vector<std::uint32_t> regions = dense_regions();
  std::vector<std::uint64_t> words;
  words.reserve(entries_.size() * 8);
  words.push_back(entries_.size());
  for (std::size_t i = 0; i < entries_.size(); ++i) {
    const ir::Node& node = *entries_[i].node;
    if (entries_[i].argument) {
      append_type(words, node.type);
      continue;
    }
    words.push_back(static_cast<std::uint64_t>(node.op) | static_cast<std::uint64_t>(node.type.layout) << 16 |
                    static_cast<std::uint64_t>(node.operands.size()) << 24);
    words.push_back(regions[i]);
    node.attrs.append_words(words);
    for (const ir::Operand& operand : node.operands) {
      if (operand.value) {
        words.push_back(static_cast<std::uint64_t>(number_of(operand.value.get())));
      } else {
        words.push_back(operand.is_integer ? ~std::uint64_t{1} : ~std::uint64_t{0});
        words.push_back(operand.is_integer ? static_cast<std::uint64_t>(operand.integer)
                                           : std::bit_cast<std::uint64_t>(operand.number));
      }
    }
  }
  for (const ir::Value& result : results_) words.push_back(static_cast<std::uint64_t>(number_of(result.get())));
  words.push_back(results_.size());
  return ir::hash_bytes(words.data(), words.size() * sizeof(std::uint64_t));
}

ir::Graph Trace::graph(const std::string& name, const std::unordered_map<const ir::Node*, std::string>& names) const {
  const std::vector<std::uint32_t> regions = dense_regions();
  std::vector<ir::Value> copies;
  copies.reserve(entries_.size());
  std::vector<ir::Value> parameters;
  for (std::size_t i = 0; i < entries_.size(); ++i) {
    const ir::Node& node = *entries_[i].node;
    if (entries_[i].argument) {
      const auto known = names.find(&node);
      copies.push_back(
          ir::parameter(node.type, known != names.end() ? known->second : "p" + std::to_string(parameters.size())));
      parameters.push_back(copies.back());
      continue;
    }
    std::vector<ir::Operand> operands = node.operands;
    for (ir::Operand& operand : operands) {
      if (operand.value) operand.value = copies[static_cast<std::size_t>(number_of(operand.value.get()))];
    }
    const ir::OriginScope scope({node.origin.module, node.origin.op, node.origin.role});
    copies.push_back(node.type.shape.rank() == 4
                         ? ir::build_in(node.type.layout, node.op, std::move(operands), node.attrs, regions[i])
                         : ir::build(node.op, std::move(operands), node.attrs, regions[i]));
  }
  std::vector<ir::Value> results;
  for (const ir::Value& result : results_) results.push_back(copies[static_cast<std::size_t>(number_of(result.get()))]);
  return ir::capture(name, std::move(parameters), std::move(results));
}

}  // namespace fusejit
