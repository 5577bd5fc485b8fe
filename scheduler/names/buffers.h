// What the buffers of a step are, in the words of the op table (x, w, dy) and of what computes them (mean, inv_std),
// for code that people read. They are names of roles, not of layers: equal steps of different layers have the same.
#pragma once

#include <string>
#include <vector>

#include "ir/graph.h"
#include "scheduler/plan.h"

namespace fusejit::scheduler {

struct BufferName {
  std::string name;               // "dy"; one buffer of the step has it. Empty: nothing is known
  std::vector<std::string> axes;  // of the kernel's dims, "n", "row", "col", "c"; empty where they are not those
};
// For each step one for each of its values. `optimised` is the graph that the plan was made of (passes.h, optimise). Of
// a plan without fusion nothing is known.
std::vector<std::vector<BufferName>> buffer_names(const Plan& plan, const ir::Graph& optimised);

}  // namespace fusejit::scheduler
