#include "scheduler/make_plan.h"

#include <algorithm>

#include "ir/base/check.h"
#include "ir/base/number.h"
#include "ir/passes/passes.h"
#include "ir/strict.h"
#include "scheduler/draft/both_gradients.h"
#include "scheduler/draft/fused.h"
#include "scheduler/draft/join_steps.h"
#include "scheduler/draft/unfused.h"
#include "scheduler/fuse/analysis.h"
#include "scheduler/fuse/fuse.h"
#include "scheduler/fuse/gradients.h"
#include "scheduler/memory/storage.h"
#include "scheduler/names/steps.h"
#include "scheduler/recompute/idle.h"
#include "scheduler/recompute/select.h"
#include "scheduler/report/bound.h"
#include "scheduler/report/explained.h"
#include "scheduler/report/memory.h"

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

ir::Graph ready_graph(const ir::Graph& graph, const PlanOptions& options) {
  const ir::LibraryLeaves leaves = [&](const ir::Graph& call) {
    return options.supports && options.supports(call, options.target).ok;
  };
  const ir::Graph made = ir::statistics_for_library(ir::optimise(graph, options.target), options.target, leaves);
  return without_idle_recomputation(made, options.target, options.rules);
}

// Groups, kernels and memory for `ready`, which passes made of `recorded`.
Plan plan_of(const ir::Graph& ready, const ir::Graph& recorded, const PlanOptions& options) {
  const bool fused = options.rules.fuse();
  StepMaker steps;
  Draft draft = fused ? draft_fused(ready, options, true, steps) : draft_unfused(ready, options);
  if (options.rules.has(Rule::barrier)) join_steps(draft, ready, options.target, options.fixed, steps);
  if (joins_gradients(options.rules, options.target)) join_gradients(draft, ready, options.target, steps);
  const RecordedNodes nodes(recorded);
  for (PlanStep& step : draft.steps) step.nodes = nodes.behind(ready, step.nodes);
  Plan plan = give_memory(ready, std::move(draft), options.target, options.rules, options.fixed);
  plan.bound_bytes = least_bytes(fused ? ready : ir::optimise(recorded, options.target), options.fixed);
  name_steps(plan, recorded);
  verify(plan);
  if (ir::is_strict()) {
    if (fused) expect_explained(plan);
    FJ_ASSERT(plan.ledger_bytes() >= plan.bound_bytes, "plan @{} moves {} bytes, less than the least, {}", plan.name,
              plan.ledger_bytes(), plan.bound_bytes);
  }
  ir::check_text(plan, parse_plan);
  return plan;
}

// The model knows neither packed weights and workspace nor gaps in the arena: what a plan takes beyond it is taken off
// the limit for the next try.
struct Planned {
  Plan plan;
  ir::Graph graph;
};
Planned plan_with_less(const ir::Graph& ready, const ir::Graph& recorded, const PlanOptions& asked) {
  constexpr int kTries = 6;
  const std::int64_t limit = asked.memory_limit.bytes;
  const bool least = asked.memory_limit.is_least();
  PlanOptions options = asked;
  options.concat_in_place = false;
  Planned smallest{plan_of(ready, recorded, asked), ready};
  std::int64_t smallest_bytes = memory_use(smallest.plan).total();
  if (!least && smallest_bytes <= limit) return smallest;
  const Activations activations(ready, options.target,
                                make_groups(ready, options.target, options.supports, {}, options.rules));
  const auto try_without = [&](const std::vector<bool>& dropped) {
    const ir::Graph graph = activations.without(dropped);
    Plan plan = plan_of(graph, recorded, options);
    plan.recomputed = static_cast<int>(std::count(dropped.begin(), dropped.end(), true));
    plan.extra_time = activations.extra_time(dropped);
    const std::int64_t bytes = memory_use(plan).total();
    if (bytes < smallest_bytes) smallest = {std::move(plan), graph}, smallest_bytes = bytes;
    return bytes;
  };
  if (!least) {
    std::int64_t aim = activations.peak(std::vector<bool>(activations.list().size())) - (smallest_bytes - limit);
    for (int i = 0; i < kTries; ++i) {
      const auto dropped = drop_for_limit(activations, aim);
      if (!dropped) break;
      const std::int64_t bytes = try_without(*dropped);
      if (bytes <= limit) return smallest;
      aim -= bytes - limit;
    }
  }
  try_without(drop_for_least(activations));
  return smallest;
}

// What a convolution stores for others while it copies it (R7) is there before that convolution runs, and may not be
// computed again behind it: where that keeps a limit from being met, joins are kernels of their own.
Planned plan_within(const ir::Graph& ready, const ir::Graph& recorded, const PlanOptions& options) {
  const std::int64_t limit = options.memory_limit.bytes;
  const bool least = options.memory_limit.is_least();
  const auto bytes = [](const Planned& planned) { return memory_use(planned.plan).total(); };
  Planned smallest = plan_with_less(ready, recorded, options);
  if (options.rules.has(Rule::join) && (least || bytes(smallest) > limit)) {
    PlanOptions apart = options;
    apart.rules = options.rules.without(Rule::join);
    Planned other = plan_with_less(ready, recorded, apart);
    other.plan.rules = options.rules;  // as they were asked for
    if (bytes(other) < bytes(smallest)) smallest = std::move(other);
  }
  FJ_CHECK(
      least || bytes(smallest) <= limit,
      "graph @{}: a memory limit of {} cannot be met: {} is the least it was planned in, {} of its values computed "
      "again",
      recorded.name(), ir::bytes_text(limit), str(memory_use(smallest.plan)), smallest.plan.recomputed);
  return smallest;
}

}  // namespace

ir::Graph optimised(const ir::Graph& graph, const PlanOptions& options) {
  const ir::Graph ready = ready_graph(graph, options);
  return options.memory_limit.is_none() ? ready : plan_within(ready, graph, options).graph;
}

Plan make_plan(const ir::Graph& graph, const PlanOptions& options) {
  refuse_empty(graph);
  const bool fused = options.rules.fuse();
  FJ_CHECK(fused || options.memory_limit.is_none(),
           "a memory limit is met by computing values again, which rules={} does not", name(options.rules));
  const ir::Graph ready = options.is_optimised ? graph
                          : fused              ? ready_graph(graph, options)
                                               : ir::choose_layouts(graph, options.target);
  return options.memory_limit.is_none() ? plan_of(ready, graph, options) : plan_within(ready, graph, options).plan;
}

}  // namespace fusejit::scheduler
