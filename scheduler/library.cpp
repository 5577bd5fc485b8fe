#include "scheduler/library.h"

#include <algorithm>
#include <map>

#include "ir/passes/passes.h"

namespace fusejit::scheduler {
namespace {

class Capture {
 public:
  Capture(const ir::Graph& graph, const Grouping& grouping, int group, int result)
      : graph_(graph), grouping_(grouping), group_(group), result_(result) {}

  CapturedCall run() && {
    const ir::Value result = rebuilt(result_);
    nodes_.push_back(result_);
    const std::string name(ir::name(graph_.value(result_)->op));
    return {ir::capture(name, std::move(parameters_), {result}), std::move(nodes_)};
  }

 private:
  bool is_inside(int v) const {
    const auto i = static_cast<std::size_t>(v);
    if (v == result_ || grouping_.group_of[i] == group_) return true;
    return !grouping_.stored[i] && graph_.value(v)->op != ir::Op::parameter;
  }
  // Recursion is bounded by the length of a group (R10).
  ir::Value rebuilt(int v) {
    const auto known = made_.find(v);
    if (known != made_.end()) return known->second;
    const ir::Node& node = *graph_.value(v);
    ir::Value value;
    if (is_inside(v)) {
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
  const Grouping& grouping_;
  const int group_, result_;
  std::map<int, ir::Value> made_;
  std::vector<ir::Value> parameters_;
  std::vector<int> nodes_;
};

}  // namespace

CapturedCall capture_call(const ir::Graph& graph, const Grouping& grouping, int group, int result) {
  return Capture(graph, grouping, group, result).run();
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
