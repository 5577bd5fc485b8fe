#include "tools/fusejit-dump/rows.h"

#include <fmt/format.h>

#include <algorithm>
#include <unordered_map>

#include "ir/passes/passes.h"
#include "scheduler/contents.h"
#include "scheduler/names/buffers.h"
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

std::vector<ParameterNames> parameter_names(const Planned& planned) {
  const scheduler::Plan& plan = planned.plan;
  std::vector<ParameterNames> names(plan.steps.size());
  if (plan.target.isa != Isa::cuda) return names;
  const ir::Graph optimised = scheduler::optimised(planned.source.graph, planned.wanted);
  std::vector<std::vector<scheduler::BufferName>> buffers = scheduler::buffer_names(plan, optimised);
  for (std::size_t s = 0; s < plan.steps.size(); ++s) {
    const std::vector<ir::KernelParam>& params = plan.steps[s].kernel->params;
    auto buffer = buffers[s].begin();
    names[s].resize(params.size());
    for (std::size_t i = 0; i < params.size(); ++i) {
      if (params[i].memory < 0) continue;
      names[s][i] = {std::move(buffer->name), std::move(buffer->axes)};
      ++buffer;
    }
  }
  return names;
}

std::string legend(const scheduler::Plan& plan, const scheduler::PlanStep& step, const char* comment,
                   const ParameterNames& names) {
  std::string lines = fmt::format("{} {}: {}\n", comment, step.name, fmt::join(step.ops, ", "));
  const scheduler::Contents contents(plan, step);
  scheduler::Contents after = contents;
  after.pass(step);
  int number = -1;
  std::size_t buffer = 0;
  for (const ir::KernelParam& param : step.kernel->params) {
    ++number;
    if (param.memory < 0) continue;
    const int value = step.values[buffer++];
    const ir::Memory& memory = step.kernel->memories[static_cast<std::size_t>(param.memory)];
    const char* const access = memory.kind == ir::MemKind::read     ? "reads"
                               : memory.kind == ir::MemKind::update ? "updates"
                                                                    : "writes";
    const auto n = static_cast<std::size_t>(number);
    const bool changes = contents[value] != after[value];
    const std::string held = contents[value] + (changes ? " -> " + after[value] : "");
    const std::string called = n < names.size() && !names[n].name.empty() ? fmt::format("  ({})", names[n].name) : "";
    lines += fmt::format("{}   {:7} %p{:<2} = {}{}\n", comment, access, number, held, called);
  }
  lines += call_lines(plan, step, comment) + schedule_lines(step, comment);
  return lines;
}

std::vector<scheduler::Refusal> ranked_refusals(const scheduler::Plan& plan) {
  std::vector<scheduler::Refusal> refusals = plan.refusals;
  std::stable_sort(refusals.begin(), refusals.end(), [](auto& a, auto& b) { return a.bytes > b.bytes; });
  return refusals;
}

}  // namespace fusejit::tools
