#include "scheduler/library.h"

#include <algorithm>
#include <map>

#include "ir/base/at.h"
#include "ir/passes/passes.h"

namespace fusejit::scheduler {
namespace {

class Capture {
 public:
  Capture(const ir::Graph& graph, std::function<bool(int)> is_inside)
      : graph_(graph), is_inside_(std::move(is_inside)) {}

  CapturedCall run(const std::vector<int>& results) && {
    std::vector<ir::Value> values;
    for (const int result : results) values.push_back(rebuilt(result));
    nodes_.insert(nodes_.end(), results.begin(), results.end());
    const std::string name(ir::name(graph_.value(results[0])->op));
    return {ir::capture(name, std::move(parameters_), std::move(values)), std::move(nodes_)};
  }

 private:
  // Recursion is bounded by the length of a group (R10).
  ir::Value rebuilt(int v) {
    const auto known = made_.find(v);
    if (known != made_.end()) return known->second;
    const ir::Node& node = *graph_.value(v);
    ir::Value value;
    if (is_inside_(v)) {
      std::vector<ir::Operand> operands = node.operands;
      for (ir::Operand& operand : operands) {
        if (!operand.is_number()) operand = rebuilt(graph_.index_of(operand.value.get()));
      }
      value = ir::build_in(node.type.layout, node.op, std::move(operands), node.attrs);
    } else {
      value = ir::parameter(node.type, "p" + std::to_string(parameters_.size()));
      parameters_.push_back(value), nodes_.push_back(v);
    }
    return made_[v] = value;
  }

  const ir::Graph& graph_;
  const std::function<bool(int)> is_inside_;
  std::map<int, ir::Value> made_;
  std::vector<ir::Value> parameters_;
  std::vector<int> nodes_;
};

}  // namespace

CapturedCall capture_call(const ir::Graph& graph, const Grouping& grouping, int group,
                          const std::vector<int>& results) {
  const auto is_inside = [&](int v) {
    if (grouping.group_of[at(v)] == group || std::find(results.begin(), results.end(), v) != results.end()) return true;
    return !grouping.stored[at(v)] && graph.value(v)->op != ir::Op::parameter;
  };
  return Capture(graph, is_inside).run(results);
}

CapturedCall capture_call(const ir::Graph& graph, const std::set<int>& inside, const std::vector<int>& results) {
  return Capture(graph, [&](int v) { return inside.contains(v); }).run(results);
}

bool runs_in_library(const ir::Graph& graph, const Target& target, int id) {
  const ir::Node& node = *graph.value(id);
  const auto suits = [](const Type& type) {
    return ir::lies_as_nhwc(type) && is_float(type.dtype) && type.dtype != DType::f64;
  };
  return ir::suits_library(node, target) && suits(node.type) &&
         std::all_of(node.operands.begin(), node.operands.end(),
                     [&](const ir::Operand& operand) { return !operand.is_number() && suits(operand.value.type()); });
}

}  // namespace fusejit::scheduler
