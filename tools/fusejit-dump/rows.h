// The steps of a plan with what each costs: the rows of tables. Steps whose kernels have the same text share their
// code.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "codegen/cuda/emit.h"
#include "ir/kernel/cost/cost.h"
#include "scheduler/plan.h"
#include "tools/fusejit-dump/machine_code.h"
#include "tools/fusejit-dump/planned.h"

namespace fusejit::tools {

struct Row {
  const scheduler::PlanStep* step;
  ir::KernelCost cost;
  std::size_t same_as;  // the first row with this kernel's text; they are compiled once
  CodeFigures code;     // where compiled, of the first row only
};

// Pointers into `plan`. UnsupportedError where kernels are to be compiled and cannot be.
std::vector<Row> rows_of(const scheduler::Plan& plan, bool compile);
std::int64_t different(const std::vector<Row>& rows);
using ParameterNames = std::vector<codegen::cuda::ParameterName>;  // by parameter of a kernel
// What the kernel's canonical names stand for, as comment lines: its ops, then every buffer parameter with what it
// holds, and then holds; of a step that a library does, the call; its schedules. `names`: what a text in CUDA C++ calls
// the parameters, said behind each.
std::string legend(const scheduler::Plan& plan, const scheduler::PlanStep& step, const char* comment,
                   const ParameterNames& names = {});
// Those names, by step: what its buffers are (scheduler/names/buffers.h). None where the target is not CUDA's.
std::vector<ParameterNames> parameter_names(const Planned& planned);
// Those that moved most bytes first.
std::vector<scheduler::Refusal> ranked_refusals(const scheduler::Plan& plan);

}  // namespace fusejit::tools
