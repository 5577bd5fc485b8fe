// The steps of a plan with what each costs: the rows of tables. Steps whose kernels have the same text share their
// code.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "ir/kernel/cost.h"
#include "scheduler/plan.h"
#include "tools/fusejit-dump/machine_code.h"

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
// What the kernel's canonical names stand for, as comment lines: its ops, then every buffer parameter; of a step that a
// library does, the call.
std::string legend(const scheduler::Plan& plan, const scheduler::PlanStep& step, const char* comment);
// Those that moved most bytes first.
std::vector<scheduler::Refusal> ranked_refusals(const scheduler::Plan& plan);

}  // namespace fusejit::tools
