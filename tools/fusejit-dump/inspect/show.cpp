// show: the plan's kernels with what each one moves and computes, and the ledger beside the bound; of one kernel its
// schedules.
#include <fmt/format.h>

#include "runtime/cudnn/step.h"
#include "scheduler/contents.h"
#include "scheduler/names/steps.h"
#include "scheduler/report/memory.h"
#include "tools/fusejit-dump/planned.h"
#include "tools/fusejit-dump/rows.h"
#include "tools/fusejit-dump/table.h"

namespace fusejit::tools {
namespace {

runtime::cudnn::Tier tier(const scheduler::Plan& plan, const scheduler::PlanStep& step) {
  return runtime::cudnn::tier_of(step.library->graph, plan.target);
}

// What performs a library step.
std::string library_of(const scheduler::Plan& plan, const scheduler::PlanStep& step) {
  return tier(plan, step) == runtime::cudnn::Tier::precompiled ? "cudnn" : "cudnn, compiled at run time";
}

Json kernel_json(const Planned& planned, const Row& row, std::size_t index, bool compile) {
  const scheduler::Plan& plan = planned.plan;
  const scheduler::PlanStep& step = *row.step;
  Json values = Json::array();
  const scheduler::Contents contents(plan, step);
  for (const int v : step.values) values.push_back(contents[v]);
  Json json = {{"index", index},
               {"name", step.name},
               {"kernel", step.kernel->name},
               {"written", scheduler::written_ops(step, planned.source.graph)},
               {"ops", step.ops},
               {"library", step.library.has_value()},
               {"engine", step.library ? Json(runtime::cudnn::name(tier(plan, step))) : Json()},
               {"values", values},
               {"tasks", row.cost.tasks},
               {"read_bytes", step.read_bytes},
               {"written_bytes", step.written_bytes},
               {"work_bytes", step.work_bytes},
               {"scratch_bytes", row.cost.scratch_bytes},
               {"flop", step.flop},
               {"statements", row.cost.statements},
               {"live_arena_bytes", scheduler::live_arena_bytes_after(plan, static_cast<int>(index))}};
  json["schedules"] = Json::array();
  for (const scheduler::ScheduledWork& one : step.schedules)
    if (!step.library)
      json["schedules"].push_back({{std::string(name(one.kind)), one.work}, {"schedule", print(one.schedule)}});
  if (row.same_as != index) json["same_as"] = row.same_as;
  if (compile && row.same_as == index) {
    if (plan.target.isa == Isa::cuda) {
      json["registers"] = row.code.registers;
      json["spill_bytes"] = row.code.spill_bytes;
      json["shared_bytes"] = row.code.shared_bytes;
    } else {
      json["ir_instructions"] = row.code.ir_instructions;
    }
    json["code_bytes"] = row.code.code_bytes;
    json["compile_milliseconds"] = row.code.compile_milliseconds;
  }
  return json;
}

std::string show_json(const Planned& planned, const std::vector<Row>& rows, const std::vector<int>& steps,
                      bool compile) {
  const scheduler::Plan& plan = planned.plan;
  Json json = heading(plan);
  json["nodes"] = planned.source.graph.value_count();
  json["ledger_bytes"] = plan.ledger_bytes();
  json["bound_bytes"] = plan.bound_bytes;
  json["arena_bytes"] = plan.arena_bytes;
  json["memory_bytes"] = memory_use(plan).total();
  json["recomputed"] = plan.recomputed;
  json["extra_time"] = plan.extra_time;
  json["different_kernels"] = different(rows);
  json["kernels"] = Json::array();
  for (const int s : steps)
    json["kernels"].push_back(
        kernel_json(planned, rows[static_cast<std::size_t>(s)], static_cast<std::size_t>(s), compile));
  json["refusals"] = Json::array();
  for (const scheduler::Refusal& refusal : plan.refusals) json["refusals"].push_back(to_json(refusal));
  return text(json);
}

// With --compile: what the code of a row takes, or the row whose code it shares.
std::vector<std::string> code_cells(const Row& row, std::size_t index, bool cuda) {
  std::vector<std::string> cells(cuda ? 3 : 2);
  if (row.same_as != index) {
    cells[0] = fmt::format("as {}", row.same_as);
  } else if (cuda) {
    cells = {std::to_string(row.code.registers), grouped(row.code.spill_bytes), grouped(row.code.shared_bytes)};
  } else {
    cells = {grouped(row.code.ir_instructions), grouped(row.code.code_bytes)};
  }
  return cells;
}

std::string kernels_text(const Planned& planned, const std::vector<Row>& rows, const std::vector<int>& steps,
                         bool compile) {
  const scheduler::Plan& plan = planned.plan;
  std::vector<std::vector<std::string>> cells = {{"#", "kernel", "tasks", "read", "written", "work", "Mflop", "ops"}};
  const bool cuda = plan.target.isa == Isa::cuda;
  if (compile) {
    const std::vector<std::string> names =
        cuda ? std::vector<std::string>{"regs", "spill", "shared"} : std::vector<std::string>{"IR", "code"};
    cells[0].insert(cells[0].end() - 1, names.begin(), names.end());
  }
  for (const int number : steps) {
    const auto s = static_cast<std::size_t>(number);
    const scheduler::PlanStep& step = *rows[s].step;
    const std::string name = step.name + (step.library ? fmt::format(" ({})", library_of(plan, step)) : "");
    cells.push_back({std::to_string(s), name, fmt::format("{}", fmt::join(rows[s].cost.tasks, "+")),
                     grouped(step.read_bytes), grouped(step.written_bytes), grouped(step.work_bytes),
                     fmt::format("{:.3f}", step.flop / 1e6),
                     fmt::format("{}", fmt::join(scheduler::written_ops(step, planned.source.graph), ", "))});
    if (!compile) continue;
    const std::vector<std::string> figures = code_cells(rows[s], s, cuda);
    cells.back().insert(cells.back().end() - 1, figures.begin(), figures.end());
  }
  return fmt::format("@{} on {}, rules={}\n", plan.name, plan.target.str(), name(plan.rules)) +
         table(cells, !compile ? "rlrrrrrl"
                      : cuda   ? "rlrrrrrrrrl"
                               : "rlrrrrrrrl");
}

std::string totals_text(const Planned& planned, const std::vector<Row>& rows, bool compile) {
  const scheduler::Plan& plan = planned.plan;
  CodeFigures code;
  double flop = 0;
  for (const Row& row : rows) {
    code.ir_instructions += row.code.ir_instructions;
    code.code_bytes += row.code.code_bytes;
    code.compile_milliseconds += row.code.compile_milliseconds;
    flop += row.step->flop;
  }
  std::string out =
      fmt::format("{} kernels ({} different) of {} nodes, {:.3f} Gflop, {} pairs not fused\n", rows.size(),
                  different(rows), planned.source.graph.value_count(), flop / 1e9, plan.refusals.size());
  const double bound = static_cast<double>(plan.bound_bytes);
  out += fmt::format("ledger {} bytes, bound {} bytes", grouped(plan.ledger_bytes()), grouped(plan.bound_bytes));
  if (bound > 0) out += fmt::format(" (ledger / bound {:.3f})", static_cast<double>(plan.ledger_bytes()) / bound);
  out += fmt::format(", arena {} bytes\n", grouped(plan.arena_bytes));
  out += "memory " + str(memory_use(plan));
  if (plan.recomputed > 0) out += ", " + recomputation_text(plan);
  out += "\n";
  if (compile) {
    if (plan.target.isa != Isa::cuda) out += fmt::format("{} IR instructions, ", grouped(code.ir_instructions));
    out +=
        fmt::format("{} bytes of code, {:.0f} ms of compiling\n", grouped(code.code_bytes), code.compile_milliseconds);
  }
  return out;
}

}  // namespace

int show(const ShowOptions& options, Invocation& invocation) {
  const Planned planned = make_plan(invocation, options);
  const bool cuda = planned.plan.target.isa == Isa::cuda;
  const bool compile = options.compile || (cuda && !options.no_compile && can_compile(planned.plan.target));
  const std::vector<Row> rows = rows_of(planned.plan, compile);
  const std::vector<int> steps = select_steps(planned.plan, options.kernel);
  if (options.json()) return put(show_json(planned, rows, steps, compile));
  return put(kernels_text(planned, rows, steps, compile) +
             (options.kernel.empty() ? totals_text(planned, rows, compile) : print_schedules(planned.plan, steps)));
}

}  // namespace fusejit::tools
