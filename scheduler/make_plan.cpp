#include "scheduler/make_plan.h"

#include <algorithm>

#include "ir/base/check.h"
#include "ir/passes/passes.h"
#include "ir/strict.h"
#include "scheduler/draft/fused.h"
#include "scheduler/draft/unfused.h"
#include "scheduler/fuse/analysis.h"
#include "scheduler/fuse/recomputation.h"
#include "scheduler/memory/storage.h"
#include "scheduler/names/steps.h"
#include "scheduler/report/bound.h"
#include "scheduler/report/explained.h"

namespace fusejit::scheduler {
namespace {

// Ops on empty values have nothing to compute: they are left to the graph interpreter.
void refuse_empty(const ir::Graph& graph) {
  std::vector<int> empty;
  for (int v = static_cast<int>(graph.parameters().size()); v < graph.value_count(); ++v) {
    const ir::Node& node = *graph.value(v);
    const auto has_none = [](const ir::Operand& o) { return !o.is_number() && o.value.type().elements() == 0; };
    if (node.type.elements() == 0 || std::any_of(node.operands.begin(), node.operands.end(), has_none))
      empty.push_back(v);
  }
  for (int v = 0; v < graph.value_count(); ++v) {
    const Type& type = graph.value(v).type();
    if (type.elements() > 0) continue;
    throw NoKernel(fmt::format("{} is empty ({})", label(graph, v), type.str()), graph, std::move(empty), true);
  }
}

}  // namespace

ir::Graph optimised(const ir::Graph& graph, const Target& target) {
  return without_idle_recomputation(ir::optimise(graph, target), target);
}

Plan make_plan(const ir::Graph& graph, const PlanOptions& options) {
  refuse_empty(graph);
  const bool fused = options.rules == Rules::all;
  const ir::Graph ready = options.is_optimised ? graph
                          : fused              ? optimised(graph, options.target)
                                               : ir::choose_layouts(graph, options.target);
  StepMaker steps;
  Draft draft = fused ? draft_fused(ready, options, true, steps) : draft_unfused(ready, options);
  const RecordedNodes recorded(graph);
  for (PlanStep& step : draft.steps) step.nodes = recorded.behind(ready, step.nodes);
  Plan plan = give_memory(ready, std::move(draft), options.target, options.rules, options.fixed);
  plan.bound_bytes = least_bytes(fused ? ready : ir::optimise(graph, options.target), options.fixed);
  name_steps(plan, graph);
  verify(plan);
  if (ir::is_strict()) {
    if (fused) expect_explained(plan);
    FJ_ASSERT(plan.ledger_bytes() >= plan.bound_bytes, "plan @{} moves {} bytes, less than the least, {}", plan.name,
              plan.ledger_bytes(), plan.bound_bytes);
  }
  ir::check_text(plan, parse_plan);
  return plan;
}

}  // namespace fusejit::scheduler
