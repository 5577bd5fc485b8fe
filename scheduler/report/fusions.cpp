#include "scheduler/report/fusions.h"

#include <algorithm>
#include <cctype>
#include <set>
#include <string_view>

#include "ir/base/at.h"
#include "ir/base/check.h"
#include "ir/ops/view.h"
#include "scheduler/names/steps.h"

namespace fusejit::scheduler {
namespace {

using ir::Family;
using ir::Role;

// What an op is in the kernel.
std::string_view kind_of(const ir::OpDef& row) {
  const auto says = [&row](std::string_view word) { return row.name.find(word) != std::string_view::npos; };
  const bool is_composite = row.family == Family::composite;
  if (row.is_contraction()) return "contraction";
  if (row.family == Family::anchor) return "window";
  if (row.family == Family::reduce) return "reduction";
  if (row.family == Family::view || row.family == Family::source || (row.copies_bits && row.max_operands == 1))
    return "layout";
  if (is_composite && says("bias")) return "bias_add";
  if (is_composite && says("norm")) return "normalization";
  if (is_composite && (says("loss") || says("entropy"))) return "loss";
  if (row.max_operands == 1) return "activation";
  return row.op == ir::Op::add ? "side_input" : "elementwise";
}

std::string key_of(const ir::Node& node) {
  if (node.origin.role == Role::update) return "update";
  const ir::OpDef& own = ir::op_def(node.op);
  const ir::OpDef& called = ir::op_def(ir::op_named(ir::called_op(node)).value_or(node.op));
  // What a layer with a contraction does beside it: it moves weights and adds a bias.
  const bool is_beside = called.is_contraction() && !own.is_contraction() && own.family != Family::view;
  std::string key(own.is_contraction() ? "contraction"
                  : is_beside          ? "bias_add"
                                       : kind_of(called.is_contraction() ? own : called));
  if (node.origin.role == Role::gradient) key += "_grad";
  if (node.origin.role == Role::weight_gradient) key += "_weight_grad";
  return key;
}

// "layer1.0.conv1/conv2d". No blank, comma or other sign of the line is in it.
std::string written(const ir::Node& node) {
  std::string text = node.origin.module ? std::string(node.origin.module) + "/" : "";
  text += ir::called_op(node);
  for (char& c : text) {
    const bool is_plain =
        std::isalnum(static_cast<unsigned char>(c)) || std::string_view("_.-/").find(c) != std::string_view::npos;
    if (!is_plain) c = '_';
  }
  return text;
}

void add_part(Fusion& fusion, const ir::Node& node) {
  const std::string key = key_of(node), value = written(node);
  auto part = std::find_if(fusion.parts.begin(), fusion.parts.end(), [&](const auto& p) { return p.first == key; });
  if (part == fusion.parts.end()) {
    fusion.parts.emplace_back(key, value);
  } else if (("," + part->second + ",").find("," + value + ",") == std::string::npos) {
    part->second += "," + value;
  }
}

// Names its operand's elements where they are: a reshape costs nothing, fused or not.
bool is_same_memory(const ir::Node& node) {
  const ir::OpDef& row = ir::op_def(node.op);
  if (!row.copies_bits || row.max_operands != 1 || node.operands[0].is_number()) return false;
  const Type& operand = node.operands[0].value.type();
  if (operand.dtype != node.type.dtype || operand.elements() != node.type.elements()) return false;
  return row.family != Family::view || ir::view_keeps_order(node);
}

// The recorded ops of each step; behind them those that passes left to one step's ops, such as a pad that is
// the padding of its convolution.
std::vector<std::vector<int>> nodes_of_steps(const Plan& plan, const ir::Graph& graph) {
  const int first = static_cast<int>(graph.parameters().size());
  std::vector<std::vector<int>> nodes(plan.steps.size());
  std::vector<std::set<int>> steps(graph.nodes().size());  // of each op
  for (std::size_t s = 0; s < nodes.size(); ++s) {
    if (plan.steps[s].kernel->name.starts_with(kPacking)) continue;  // lays weights out, and computes nothing of them
    for (const int node : plan.steps[s].nodes) {
      if (node < 0 || at(node) >= steps.size()) continue;  // a file may say anything
      nodes[s].push_back(node), steps[at(node)].insert(static_cast<int>(s));
    }
  }
  std::vector<std::set<int>> users(steps.size());  // ops that read it
  std::vector<bool> is_result(steps.size());
  for (const ir::Value& result : graph.results())
    if (const int v = graph.index_of(result.get()); v >= first) is_result[at(v - first)] = true;
  for (int node = static_cast<int>(steps.size()) - 1; node >= 0; --node) {
    const bool is_left = steps[at(node)].empty() && !is_result[at(node)] && !is_same_memory(*graph.nodes()[at(node)]);
    if (is_left && users[at(node)].size() == 1) {
      const std::set<int>& of_user = steps[at(*users[at(node)].begin())];
      if (!of_user.empty()) steps[at(node)] = {*of_user.rbegin()}, nodes[at(*of_user.rbegin())].push_back(node);
    }
    for (const int operand : graph.operands(first + node))
      if (operand >= first) users[at(operand - first)].insert(node);
  }
  return nodes;
}

// Bytes that recorded ops, run one by one, would write and read back, and the plan does not.
class Savings {
 public:
  Savings(const std::vector<std::vector<int>>& nodes, const ir::Graph& graph)
      : graph_(graph), steps_of_(at(graph.value_count())), users_(steps_of_.size()), saved_(nodes.size()) {
    const int first = static_cast<int>(graph.parameters().size());
    for (int s = 0; s < static_cast<int>(nodes.size()); ++s)
      for (const int node : nodes[at(s)]) steps_of_[at(first + node)].push_back(s);
    for (int v = first; v < graph.value_count(); ++v) {
      for (const int operand : graph.operands(v)) {
        if (operand >= first && (users_[at(operand)].empty() || users_[at(operand)].back() != v))
          users_[at(operand)].push_back(v);
      }
    }
    std::vector<bool> is_result(steps_of_.size());
    for (const ir::Value& result : graph.results()) is_result[at(graph.index_of(result.get()))] = true;
    for (int v = first; v < graph.value_count(); ++v) add(v, is_result[at(v)]);
  }
  std::int64_t by(int step) const { return saved_[at(step)]; }
  const std::vector<int>& steps_of(int value) const { return steps_of_[at(value)]; }

 private:
  // The first step that computes both; -1: none.
  int common(int v, int user) const {
    for (const int step : steps_of(user)) {
      if (computes(step, v)) return step;
    }
    return -1;
  }
  bool computes(int step, int v) const { return std::binary_search(steps_of(v).begin(), steps_of(v).end(), step); }
  void add(int v, bool is_written) {
    const std::int64_t bytes = graph_.value(v).type().bytes();
    int first = -1;
    for (const int user : users_[at(v)]) {
      const int step = common(v, user);
      // Where an op is computed in several steps, those without v have it from memory.
      is_written |= !std::all_of(steps_of(user).begin(), steps_of(user).end(), [&](int s) { return computes(s, v); });
      if (step < 0) continue;
      if (!is_same_memory(*graph_.value(user))) saved_[at(step)] += bytes;
      first = first < 0 ? step : std::min(first, step);
    }
    if (first >= 0 && !is_written && !is_same_memory(*graph_.value(v))) saved_[at(first)] += bytes;
  }

  const ir::Graph& graph_;
  std::vector<std::vector<int>> steps_of_, users_;  // by value
  std::vector<std::int64_t> saved_;                 // by step
};

}  // namespace

Fusions fusions_of(const Plan& plan, const ir::Graph& recorded) {
  const std::vector<std::vector<int>> nodes = nodes_of_steps(plan, recorded);
  const Savings savings(nodes, recorded);
  Fusions fusions;
  fusions.graph = plan.name;
  fusions.recorded_ops = static_cast<int>(recorded.nodes().size());
  fusions.kernels = static_cast<int>(plan.steps.size());
  std::vector<bool> is_fused(recorded.nodes().size());
  for (int s = 0; s < fusions.kernels; ++s) {
    const PlanStep& step = plan.steps[at(s)];
    Fusion fusion{s, step.name, {}, 0, savings.by(s)};
    for (const int node : nodes[at(s)]) {
      add_part(fusion, *recorded.nodes()[at(node)]);
      ++fusion.ops;
    }
    if (fusion.ops < 2) continue;
    for (const int node : nodes[at(s)]) is_fused[at(node)] = true;
    fusions.saved_bytes += fusion.saved_bytes;
    fusions.list.push_back(std::move(fusion));
  }
  fusions.fused_ops = static_cast<int>(std::count(is_fused.begin(), is_fused.end(), true));
  return fusions;
}

std::string line_of(const Fusion& fusion) {
  std::string line = "fusion";
  for (const auto& [key, value] : fusion.parts) line += fmt::format(" {}={}", key, value);
  return line + fmt::format(" ops={} kernel={} saved_bytes={}", fusion.ops, fusion.kernel, fusion.saved_bytes);
}

std::string summary_of(const Fusions& fusions) {
  return fmt::format("fusions graph={} lines={} fused_ops={} recorded_ops={} kernels={} saved_bytes={}", fusions.graph,
                     fusions.list.size(), fusions.fused_ops, fusions.recorded_ops, fusions.kernels,
                     fusions.saved_bytes);
}

}  // namespace fusejit::scheduler
