// Engines: every way to run a graph, compared with the graph interpreter; and every way to run a plan that must change
// no bit (design: tests).
#pragma once

#include <string>

#include "runtime/session.h"
#include "tests/conformance/compare.h"

namespace fusejit::testing {

// Runs the graph on the graph interpreter, on the kernel interpreter and compiled for every x86 target that the host
// supports; plans also with one allocation a value, poisoned freed ranges, reversed and shuffled tasks and 1, 2, 3 and
// 8 threads. Returns "" or the first disagreement, one line.
std::string compare_engines(const ir::Graph& graph, std::uint64_t seed, Tolerance tolerance = {},
                            std::int64_t integer_bound = 4, bool kernel_interpreter = true);

// The same of these arguments.
std::string compare_engines(const ir::Graph& graph, const std::vector<runtime::Buffer>& arguments,
                            Tolerance tolerance = {}, bool kernel_interpreter = true);

}  // namespace fusejit::testing
