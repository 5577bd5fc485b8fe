#include "tools/fusejit-dump/rows.h"

#include <fmt/format.h>

#include <algorithm>
#include <unordered_map>

#include "tools/fusejit-dump/library_call.h"

namespace fusejit::tools {

std::vector<Row> rows_of(const scheduler::Plan& plan, bool compile) {
  std::vector<Row> rows;
  std::unordered_map<std::string, std::size_t> first;
  for (const scheduler::PlanStep& step : plan.steps) {
    const auto [at, is_new] = first.emplace(ir::kernel_key_text(*step.kernel), rows.size());
    rows.push_back({&step, ir::cost(*step.kernel), at->second, {}});
    if (compile && is_new) rows.back().code = measure_code(*step.kernel, plan.target);
  }
  return rows;
}

std::int64_t different(const std::vector<Row>& rows) {
  std::int64_t count = 0;
  for (std::size_t i = 0; i < rows.size(); ++i) count += rows[i].same_as == i;
  return count;
}

std::string legend(const scheduler::Plan& plan, const scheduler::PlanStep& step, const char* comment) {
  std::string lines = fmt::format("{} {}: {}\n", comment, step.name, fmt::join(step.ops, ", "));
  int number = -1;
  std::size_t buffer = 0;
  for (const ir::KernelParam& param : step.kernel->params) {
    ++number;
    if (param.memory < 0) continue;
    const scheduler::PlanValue& value = plan.values[static_cast<std::size_t>(step.values[buffer++])];
    const ir::Memory& memory = step.kernel->memories[static_cast<std::size_t>(param.memory)];
    const char* const access = memory.kind == ir::MemKind::read     ? "reads"
                               : memory.kind == ir::MemKind::update ? "updates"
                                                                    : "writes";
    lines += fmt::format("{}   {:7} %p{:<2} = {}\n", comment, access, number, value.label);
  }
  lines += call_lines(plan, step, comment);
  return lines;
}

std::vector<scheduler::Refusal> ranked_refusals(const scheduler::Plan& plan) {
  std::vector<scheduler::Refusal> refusals = plan.refusals;
  std::stable_sort(refusals.begin(), refusals.end(), [](auto& a, auto& b) { return a.bytes > b.bytes; });
  return refusals;
}

}  // namespace fusejit::tools
