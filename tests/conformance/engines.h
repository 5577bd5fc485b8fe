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

// On this target: machine code where this processor has it, else the kernel interpreter; one thread.
runtime::SessionOptions options_for(const std::string& target);

// Runs the graph by one thread and by three. Fails the test where a result is further from `want` than the tolerance,
// or a bit depends on the threads. Returns what one thread made.
std::vector<runtime::Buffer> expect_results(const ir::Graph& graph, const std::vector<runtime::Buffer>& arguments,
                                            runtime::SessionOptions options, const std::vector<runtime::Buffer>& want,
                                            Tolerance tolerance);

}  // namespace fusejit::testing
