// Arguments made up for a graph, and results compared.
#pragma once

#include <cstdint>
#include <vector>

#include "ir/graph.h"
#include "runtime/buffer.h"

namespace fusejit::testing {

struct Tolerance {
  double relative = 2e-5;
  double absolute = 2e-5;
};

// Arguments of the graph's parameter types: floats in [-1, 1), integers in [0, integer_bound).
std::vector<runtime::Buffer> random_arguments(const ir::Graph& graph, std::uint64_t seed,
                                              std::int64_t integer_bound = 4);

// Largest |got - want| - (absolute + relative * |want|) over the results; <= 0: agrees. NaN must meet NaN.
double excess(const std::vector<runtime::Buffer>& got, const std::vector<runtime::Buffer>& want, Tolerance tolerance);
bool same_bits(const std::vector<runtime::Buffer>& a, const std::vector<runtime::Buffer>& b);

}  // namespace fusejit::testing
