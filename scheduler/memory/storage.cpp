#include "scheduler/memory/storage.h"

#include <algorithm>
#include <utility>

#include "ir/base/check.h"
#include "scheduler/memory/arena.h"
#include "scheduler/uses.h"

namespace fusejit::scheduler {
namespace {

// Temporaries and constants that no step uses and no result is: the inner values of groups. They leave the draft.
void drop_unused(Draft& draft) {
  std::vector<bool> used(draft.values.size());
  for (std::size_t v = 0; v < used.size(); ++v) used[v] = draft.values[v].kind == DraftKind::parameter;
  for (const PlanStep& step : draft.steps)
    for (const int v : step.values) used[static_cast<std::size_t>(v)] = true;
  for (const int v : draft.results) used[static_cast<std::size_t>(v)] = true;
  for (std::size_t v = 0; v < used.size(); ++v)
    if (used[v] && draft.values[v].inside >= 0) used[static_cast<std::size_t>(draft.values[v].inside)] = true;
  std::vector<int> moved(used.size(), -1);
  std::vector<DraftValue> kept;
  for (std::size_t v = 0; v < used.size(); ++v) {
    if (!used[v]) continue;
    moved[v] = static_cast<int>(kept.size());
    kept.push_back(std::move(draft.values[v]));
  }
  draft.values = std::move(kept);
  for (DraftValue& value : draft.values)
    if (value.inside >= 0) value.inside = moved[static_cast<std::size_t>(value.inside)];
  for (PlanStep& step : draft.steps) {  // a library's values are some of its kernel's
    for (int& v : step.values) v = moved[static_cast<std::size_t>(v)];
    for (Overwritten& overwritten : step.overwrites)
      overwritten.value = moved[static_cast<std::size_t>(overwritten.value)];
    if (!step.library) continue;
    for (int& v : step.library->values) v = moved[static_cast<std::size_t>(v)];
  }
  for (int& v : draft.results) v = moved[static_cast<std::size_t>(v)];
}

// How many steps write each value: more than one where it is overwritten in place.
std::vector<int> count_writers(const Plan& plan) {
  std::vector<int> writers(plan.values.size());
  for (const PlanStep& step : plan.steps) {
    for_each_use(step, [&](int value, ir::MemKind kind) {
      writers[static_cast<std::size_t>(value)] += kind != ir::MemKind::read;
    });
  }
  return writers;
}

// What a step computes from one fixed parameter and nothing else that is not in the plan: weights, packed.
void find_derived(Plan& plan, const std::vector<bool>& fixed) {
  const std::vector<int> writers = count_writers(plan);
  for (std::size_t s = 0; s < plan.steps.size(); ++s) {
    PlanValue* made = nullptr;
    int source = -1, others = 0;
    const PlanStep& step = plan.steps[s];
    for (const int v : step.values) {
      PlanValue& value = plan.values[static_cast<std::size_t>(v)];
      const bool is_fixed = value.storage == Storage::argument && fixed[static_cast<std::size_t>(value.index)];
      const bool is_made = value.storage == Storage::arena && value.first_step == static_cast<int>(s) &&
                           writers[static_cast<std::size_t>(v)] == 1;
      if (is_made && !made) {
        made = &value;
      } else if (is_fixed && source < 0) {
        source = value.index;
      } else if (value.storage != Storage::constant) {
        ++others;
      }
    }
    if (!made || source < 0 || others > 0) continue;
    made->storage = Storage::derived, made->index = source;
  }
}

}  // namespace

Plan give_memory(const ir::Graph& graph, Draft draft, const Target& target, Rules rules,
                 const std::vector<bool>& fixed) {
  drop_unused(draft);
  Plan plan;
  plan.name = graph.name(), plan.target = target, plan.rules = rules;
  plan.refusals = std::move(draft.refusals);
  plan.fallbacks = std::move(draft.fallbacks);
  plan.steps = std::move(draft.steps);
  const int end = static_cast<int>(plan.steps.size());
  for (DraftValue& value : draft.values) {
    PlanValue planned;
    planned.dtype = value.dtype, planned.bytes = value.bytes, planned.label = value.label;
    planned.data = std::move(value.data);
    planned.storage = value.kind == DraftKind::parameter  ? Storage::argument
                      : value.kind == DraftKind::constant ? Storage::constant
                                                          : Storage::arena;
    planned.index = value.parameter, planned.inside = value.inside;
    planned.first_step = value.kind == DraftKind::temporary ? end : -1;
    plan.values.push_back(std::move(planned));
  }
  plan.parameters.assign(graph.parameters().size(), -1);
  for (std::size_t v = 0; v < draft.values.size(); ++v) {
    if (draft.values[v].kind == DraftKind::parameter)
      plan.parameters[static_cast<std::size_t>(draft.values[v].parameter)] = static_cast<int>(v);
  }
  for (int s = 0; s < end; ++s) {
    for (const int v : plan.steps[static_cast<std::size_t>(s)].values) {
      PlanValue& value = plan.values[static_cast<std::size_t>(v)];
      value.first_step = std::min(value.first_step, s), value.last_step = std::max(value.last_step, s);
    }
  }
  for (const PlanValue& value : plan.values) {
    if (value.inside < 0) continue;
    PlanValue& around = plan.values[static_cast<std::size_t>(value.inside)];
    around.first_step = std::min(around.first_step, value.first_step);
    around.last_step = std::max(around.last_step, value.last_step);
  }
  plan.results = draft.results;
  for (std::size_t r = 0; r < plan.results.size(); ++r) {
    PlanValue& value = plan.values[static_cast<std::size_t>(plan.results[r])];
    value.last_step = end;
    if (value.storage == Storage::arena) value.storage = Storage::result, value.index = static_cast<int>(r);
    if (value.storage == Storage::argument && graph.results()[r]->op != ir::Op::parameter)
      value.storage = Storage::donated;
  }
  if (!fixed.empty()) find_derived(plan, fixed);
  std::vector<ArenaBlock> blocks;
  for (PlanValue& value : plan.values) {
    if (value.storage == Storage::arena && value.bytes > 0 && value.inside < 0)
      blocks.push_back({value.bytes, value.first_step, value.last_step, &value.offset});
  }
  for (int s = 0; s < end; ++s) {
    PlanStep& step = plan.steps[static_cast<std::size_t>(s)];
    if (step.work_bytes > 0) blocks.push_back({step.work_bytes, s, s, &step.work_offset});
  }
  plan.arena_bytes = place(std::move(blocks), end);
  for (std::size_t v = 0; v < plan.values.size(); ++v) {
    PlanValue& value = plan.values[v];
    if (value.inside < 0) continue;
    value.offset = plan.values[static_cast<std::size_t>(value.inside)].offset + draft.values[v].from;
    value.bytes -= draft.values[v].from;
  }
  return plan;
}

}  // namespace fusejit::scheduler
