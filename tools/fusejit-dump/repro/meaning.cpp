#include "tools/fusejit-dump/repro/meaning.h"

#include <algorithm>
#include <map>
#include <string>
#include <unordered_map>

#include "scheduler/contents.h"
#include "scheduler/fuse/analysis.h"
#include "scheduler/uses.h"

namespace fusejit::tools {
namespace {

constexpr std::string_view kPacked = " packed";

using MemKind = ir::MemKind;

// The plan value and the kind of each buffer parameter.
struct Binding {
  int value;
  MemKind kind;
};
std::vector<Binding> bindings_of(const scheduler::PlanStep& step) {
  std::vector<Binding> bindings;
  scheduler::for_each_use(step, [&](int value, MemKind kind) { bindings.push_back({value, kind}); });
  return bindings;
}

class Cut {
 public:
  Cut(const scheduler::Plan& plan, const ir::Graph& graph, int step)
      : plan_(plan), graph_(graph), contents_(plan, plan.steps[static_cast<std::size_t>(step)]) {
    for (int v = 0; v < graph.value_count(); ++v) nodes_.emplace(scheduler::label(graph, v), v);
  }

  std::optional<Meaning> of(const scheduler::PlanStep& step) {
    const std::vector<Binding> bindings = bindings_of(step);
    for (const auto& [value, kind] : bindings) {
      const bool stores_part = kind == MemKind::update && is_inside(value);  // and reads nothing of it
      if (kind != MemKind::write && !stores_part && !add_read(value)) return std::nullopt;
    }
    contents_.pass(step);
    std::vector<ir::Value> results;
    for (const auto& [value, kind] : bindings) {
      if (kind == MemKind::read) continue;
      const int node = node_in(value);
      if (node < 0 || !compute(node)) return std::nullopt;
      results.push_back(made_.at(node));
      writes_.push_back(value);
    }
    if (results.empty()) return std::nullopt;
    return Meaning{ir::capture(step.name, std::move(parameters_), std::move(results)), std::move(reads_),
                   std::move(writes_)};
  }

 private:
  // It is a part of a concatenation, or one that others begin with, in memory of the whole.
  bool is_inside(int value) const { return plan_.values[static_cast<std::size_t>(value)].inside >= 0; }
  // The node whose value it holds; -1: it is in a form that no graph has.
  int node_in(int value) const {
    const auto found = nodes_.find(contents_[value]);
    if (found == nodes_.end()) return -1;
    const scheduler::PlanValue& held = plan_.values[static_cast<std::size_t>(value)];
    const Type& type = graph_.value(found->second).type();
    const bool as_bits = held.dtype == DType::b1 && type.dtype == DType::boolean;
    return is_inside(value) || held.bytes == (as_bits ? bytes(DType::b1, type.elements()) : type.bytes())
               ? found->second
               : -1;
  }
  // The value that holds it now; -1: none.
  int holder_of(const std::string& label) const {
    for (std::size_t v = 0; v < plan_.values.size(); ++v) {
      if (contents_[static_cast<int>(v)] == label) return static_cast<int>(v);
    }
    return -1;
  }

  bool add_read(int value) {
    const std::string& label = contents_[value];
    if (label.ends_with(kPacked)) {
      value = holder_of(label.substr(0, label.size() - kPacked.size()));
      if (value < 0) return false;
    }
    const int node = node_in(value);
    if (node < 0) return false;
    if (made_.contains(node)) return true;
    std::string name = scheduler::label(graph_, node).substr(1);
    std::replace(name.begin(), name.end(), ' ', '_');
    if (name[0] >= '0' && name[0] <= '9') name = "v" + name;
    made_[node] = ir::parameter(graph_.value(node).type(), name);
    parameters_.push_back(made_[node]);
    reads_.push_back(value);
    return true;
  }

  // False if it needs more than what is read.
  bool compute(int result) {
    std::vector<int> open{result};
    while (!open.empty()) {
      const int v = open.back();
      if (made_.contains(v)) {
        open.pop_back();
        continue;
      }
      if (v < static_cast<int>(graph_.parameters().size())) return false;
      const ir::Node& node = *graph_.value(v);
      std::vector<ir::Operand> operands;
      bool is_ready = true;
      for (const ir::Operand& operand : node.operands) {
        if (operand.is_number()) {
          operands.push_back(operand);
          continue;
        }
        const auto found = made_.find(graph_.index_of(operand.value.get()));
        if (found == made_.end()) {
          open.push_back(graph_.index_of(operand.value.get()));
          is_ready = false;
        } else if (is_ready) {
          operands.push_back(found->second);
        }
      }
      if (!is_ready) continue;
      made_[v] = ir::rebuild(node, std::move(operands));
      open.pop_back();
    }
    return true;
  }

  const scheduler::Plan& plan_;
  const ir::Graph& graph_;
  std::unordered_map<std::string, int> nodes_;  // by label
  scheduler::Contents contents_;
  std::map<int, ir::Value> made_;
  std::vector<ir::Value> parameters_;
  std::vector<int> reads_, writes_;
};

}  // namespace

std::optional<Meaning> meaning_of(const scheduler::Plan& plan, int step, const ir::Graph& graph) {
  return Cut(plan, graph, step).of(plan.steps[static_cast<std::size_t>(step)]);
}

}  // namespace fusejit::tools
