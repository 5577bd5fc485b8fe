#include "frontend/onnx/replay.h"

#include <algorithm>

#include "ir/base/check.h"
#include "ir/origin.h"

namespace fusejit::onnx {
namespace {

bool is_host_memory(const Tensor& x) { return x.evaluated() && x.device().is_cpu(); }

// What a node gives: known where its operands are, or only their shapes matter.
Value given(const Tensor& result, bool is_known) {
  if (!result.defined() || !is_known || result.elements() > kMostKnown) return {result, false};
  return {is_host_memory(result) ? result : folded(result), true};
}

}  // namespace

std::vector<Tensor> replay(const Graph& graph, std::vector<Value> values, const Replay& how, Problems& problems) {
  const auto at = [&](int value) -> Value& { return values[static_cast<std::size_t>(value)]; };
  std::vector<Value> operands;
  for (const Node& node : graph.nodes) {
    if (!node.row) continue;  // a problem already
    operands.clear();
    bool are_there = true, are_known = true;
    for (const int value : node.inputs) {
      operands.push_back(value < 0 ? Value() : at(value));
      if (value < 0) continue;
      are_there = are_there && operands.back().tensor.defined();
      are_known = are_known && operands.back().known;
    }
    if (!are_there) continue;
    const Call::Keep keep = [&](int input, const Tensor& next) {
      if (how.keep) how.keep(node.inputs[static_cast<std::size_t>(input)], next);
    };
    // What is known stays in host memory; all else is where the inputs are.
    const Call call(graph, node, operands, how.training, are_known ? std::nullopt : how.device, keep);
    try {
      const ir::OriginScope origin(ir::Origin{node.place});
      const std::vector<Tensor> results = node.row->mean(call);
      for (std::size_t i = 0; i < std::min(results.size(), node.outputs.size()); ++i) {
        if (node.outputs[i] >= 0) at(node.outputs[i]) = given(results[i], are_known || node.row->of_shapes);
      }
    } catch (const UserError& error) {
      problems.add(node, error.what(), true);
    } catch (const UnsupportedError& error) {
      problems.add(node, error.what(), false);
    }
  }
  std::vector<Tensor> results;
  for (const Declared& result : graph.results) results.push_back(at(result.value).tensor);
  return results;
}

}  // namespace fusejit::onnx
