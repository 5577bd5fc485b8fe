#include "tools/fusejit-dump/meaning.h"

#include <algorithm>
#include <map>
#include <string>
#include <unordered_map>

#include "scheduler/group.h"

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
  for (const ir::KernelParam& param : step.kernel->params) {
    if (param.memory < 0) continue;
    bindings.push_back(
        {step.values[bindings.size()], step.kernel->memories[static_cast<std::size_t>(param.memory)].kind});
  }
  return bindings;
}

// Which node's value each value of a plan holds, while its steps are gone through. A value is labelled by the first
// node that it holds; what is written over it in place is known by being a result, or the one thing left to be written.
class Contents {
 public:
  Contents(const scheduler::Plan& plan, const ir::Graph& graph)
      : plan_(plan), graph_(graph), holds_(plan.values.size()) {
    for (int v = 0; v < graph.value_count(); ++v) nodes_.emplace(scheduler::label(graph, v), v);
    for (std::size_t v = 0; v < holds_.size(); ++v) holds_[v] = labelled(static_cast<int>(v));
    for (std::size_t r = 0; r < plan.results.size(); ++r)
      results_.emplace(plan.results[r], graph.index_of(graph.results()[r].get()));
  }

  // -1: not known, or in a form that no graph has.
  int held_by(int value) const { return holds_[static_cast<std::size_t>(value)]; }
  // The node whose label a value has.
  int labelled(int value) const {
    const scheduler::PlanValue& planned = plan_.values[static_cast<std::size_t>(value)];
    const auto found = nodes_.find(planned.label);
    return found != nodes_.end() && graph_.value(found->second).type().bytes() == planned.bytes ? found->second : -1;
  }
  // What the step leaves in each value that it writes.
  std::map<int, int> written_by(const scheduler::PlanStep& step) const {
    std::map<int, int> written;
    std::vector<int> open, left;  // values overwritten with something that is not a result; ops that are in no value
    for (const auto& [value, kind] : bindings_of(step)) {
      if (kind == MemKind::write) written[value] = labelled(value);
      if (kind != MemKind::update) continue;
      const auto result = results_.find(value);
      const bool is_result = result != results_.end() && is_op(step, result->second);
      if (is_result) written[value] = result->second;
      if (!is_result) open.push_back(value);
    }
    for (const std::string& op : step.ops) {
      const auto node = nodes_.find(op);
      if (node == nodes_.end()) continue;
      const bool is_known =
          std::any_of(written.begin(), written.end(), [&](auto& w) { return w.second == node->second; });
      if (!is_known) left.push_back(node->second);
    }
    for (const int value : open) written[value] = -1;
    if (open.size() == 1 && left.size() == 1 &&
        bytes_of(left[0]) == plan_.values[static_cast<std::size_t>(open[0])].bytes)
      written[open[0]] = left[0];
    return written;
  }
  void pass(const scheduler::PlanStep& step) {
    for (const auto& [value, node] : written_by(step)) holds_[static_cast<std::size_t>(value)] = node;
  }

 private:
  std::int64_t bytes_of(int node) const { return graph_.value(node).type().bytes(); }
  bool is_op(const scheduler::PlanStep& step, int node) const {
    return std::find(step.ops.begin(), step.ops.end(), scheduler::label(graph_, node)) != step.ops.end();
  }

  const scheduler::Plan& plan_;
  const ir::Graph& graph_;
  std::unordered_map<std::string, int> nodes_;  // by label
  std::unordered_map<int, int> results_;        // by value
  std::vector<int> holds_;
};

class Cut {
 public:
  Cut(const scheduler::Plan& plan, const ir::Graph& graph, int step)
      : plan_(plan), graph_(graph), contents_(plan, graph) {
    for (int s = 0; s < step; ++s) contents_.pass(plan.steps[static_cast<std::size_t>(s)]);
  }

  std::optional<Meaning> of(const scheduler::PlanStep& step) {
    const std::map<int, int> written = contents_.written_by(step);
    std::vector<int> results;
    for (const auto& [value, kind] : bindings_of(step)) {
      if (kind != MemKind::write && !add_read(value)) return std::nullopt;
      if (kind == MemKind::read) continue;
      if (written.at(value) < 0) return std::nullopt;
      results.push_back(written.at(value));
      writes_.push_back(value);
    }
    std::vector<ir::Value> made;
    for (const int result : results) {
      if (!compute(result)) return std::nullopt;
      made.push_back(made_.at(result));
    }
    if (made.empty()) return std::nullopt;
    return Meaning{ir::capture(step.name, std::move(parameters_), std::move(made)), std::move(reads_),
                   std::move(writes_)};
  }

 private:
  bool add_read(int value) {
    const std::string& label = plan_.values[static_cast<std::size_t>(value)].label;
    if (label.ends_with(kPacked)) {
      value = holder_of(label.substr(0, label.size() - kPacked.size()));
      if (value < 0) return false;
    }
    const int node = contents_.held_by(value);
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

  // The value that holds a node now; -1: none.
  int holder_of(const std::string& label) const {
    for (std::size_t v = 0; v < plan_.values.size(); ++v) {
      const int node = contents_.held_by(static_cast<int>(v));
      if (node >= 0 && scheduler::label(graph_, node) == label) return static_cast<int>(v);
    }
    return -1;
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
  Contents contents_;
  std::map<int, ir::Value> made_;
  std::vector<ir::Value> parameters_;
  std::vector<int> reads_, writes_;
};

}  // namespace

std::optional<Meaning> meaning_of(const scheduler::Plan& plan, int step, const ir::Graph& graph) {
  return Cut(plan, graph, step).of(plan.steps[static_cast<std::size_t>(step)]);
}

}  // namespace fusejit::tools
