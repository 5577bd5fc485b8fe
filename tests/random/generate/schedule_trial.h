// A graph with one anchor, planned with schedules that are drawn for it, and run.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "runtime/buffer.h"
#include "scheduler/plan.h"
#include "tests/random/generate/schedule_generator.h"

namespace fusejit::testing {

// FUSEJIT_NIGHTLY is set.

// The anchor's group reduces over its results.
bool sums_results(const ir::Graph& graph);

using Draw = std::function<scheduler::Schedule(const std::string& op, const ir::Contraction& contraction,
                                               const scheduler::Schedule& chosen)>;

struct Trial {
  scheduler::Plan plan;
  bool legal = true;  // what was drawn breaks no rule, and is in the plan
  std::string tried;  // all of it
  // What is in the plan, and its sum_order(), one a line.
  std::vector<std::pair<ir::Contraction, scheduler::Schedule>> drawn;
  std::string order;
};
// Every text of a schedule is read back, and a rule that it breaks is said as such. Throws what else stood in the way
// of a kernel. With other contractions than the rows' for anchors; `is_optimised`: the graph is as passes leave it.
Trial planned(const ir::Graph& graph, const Target& target, const Draw& draw,
              ir::ContractionsFn contractions = ir::contractions_of, bool is_optimised = false);

// Whole numbers, with which every order of a sum is exact; else any of about the size of 1.
std::vector<runtime::Buffer> arguments_of(const ir::Graph& graph, Random& random, bool whole);

// On the kernel interpreter, tasks in any order, nothing defined before it is written.
std::vector<runtime::Buffer> interpreted(const ir::Graph& graph, const scheduler::Plan& plan,
                                         const std::vector<runtime::Buffer>& arguments);
std::vector<runtime::Buffer> as_machine_code(const ir::Graph& graph, const scheduler::Plan& plan,
                                             const std::vector<runtime::Buffer>& arguments, int threads);
std::vector<runtime::Buffer> on_graph_interpreter(const ir::Graph& graph,
                                                  const std::vector<runtime::Buffer>& arguments);

// "" or the first element whose bits differ; zeros are equal.
std::string difference(const ir::Graph& graph, const std::vector<runtime::Buffer>& got,
                       const std::vector<runtime::Buffer>& want);

}  // namespace fusejit::testing
