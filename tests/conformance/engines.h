// Engines: every way to run a graph, compared with the graph interpreter; and every way to run a plan that must change
// no bit (design: tests).
#pragma once

#include <string>
#include <vector>

#include "ir/graph.h"
#include "runtime/session.h"

namespace fusejit::testing {

struct Tolerance {
  double relative = 2e-5;
  double absolute = 2e-5;
};

// Arguments of the graph's parameter types: floats in [-1, 1), integers in [0, integer_bound).
std::vector<runtime::Buffer> random_arguments(const ir::Graph& graph, std::uint64_t seed, std::int64_t integer_bound = 4);

// Largest |got - want| - (absolute + relative * |want|) over the results; <= 0: agrees. NaN must meet NaN.
double excess(const std::vector<runtime::Buffer>& got, const std::vector<runtime::Buffer>& want, Tolerance tolerance);
bool same_bits(const std::vector<runtime::Buffer>& a, const std::vector<runtime::Buffer>& b);

// Runs the graph on the graph interpreter, on the kernel interpreter and compiled for every x86 target that the host
// supports; plans also with one allocation a value, poisoned freed ranges, reversed and shuffled tasks and 1, 2, 3 and 8
// threads. Returns "" or the first disagreement, one line.
std::string compare_engines(const ir::Graph& graph, std::uint64_t seed, Tolerance tolerance = {}, std::int64_t integer_bound = 4,
                            bool kernel_interpreter = true);

}  // namespace fusejit::testing
