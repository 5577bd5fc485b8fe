// Random graphs over the op table, from a seed, and their shrinking to a small .fj when an engine disagrees.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "ir/graph.h"
#include "ir/interp.h"

namespace fusejit::testing {

struct GraphOptions {
  int nodes = 14;
  DType dtype = DType::f32;  // of float values; ints and bools come beside them
  bool anchors = true;
  // Only ops whose result moves little when an operand is rounded otherwise, so that engines may differ in the last
  // bits. Without it every element-wise row is drawn.
  bool smooth = true;
};

// The same seed and options give the same graph everywhere.
ir::Graph random_graph(std::uint64_t seed, const GraphOptions& options);
// Floats in [-2, 2] with some exact zeros and ties, ints in [-3, 3].
std::vector<ir::Array> graph_arguments(const ir::Graph& graph, std::uint64_t seed);

// "" if the results agree: NaN and inf in the same places, ints equal, floats within `relative` of the largest
// magnitude beside them; else what differs first.
std::string disagreement(const std::vector<ir::Array>& got, const std::vector<ir::Array>& want, double relative);

// A graph, as small as greedy steps make it, for which `fails` still holds: fewer results, parameters in place of
// nodes, operands in place of nodes.
ir::Graph shrink(ir::Graph graph, const std::function<bool(const ir::Graph&)>& fails);

}  // namespace fusejit::testing
