// Storage of a plan's values: arguments and results by reference, everything else in one arena, where values that are
// never alive together share addresses. Largest first, lowest free offset: simple, and within a few per cent of the bound
// on convolutional networks.
#include <algorithm>
#include <map>
#include <numeric>

#include "ir/base/check.h"
#include "scheduler/draft.h"

namespace fusejit::scheduler {
namespace {

constexpr std::int64_t kAlignment = 64;

std::int64_t aligned(std::int64_t bytes) { return (bytes + kAlignment - 1) / kAlignment * kAlignment; }

struct Block {
  std::int64_t bytes;
  int first, last;
  std::int64_t* offset;
};

std::int64_t place(std::vector<Block> blocks) {
  std::stable_sort(blocks.begin(), blocks.end(), [](const Block& a, const Block& b) { return a.bytes > b.bytes; });
  std::vector<const Block*> placed;  // by offset
  std::int64_t total = 0;
  for (const Block& block : blocks) {
    std::int64_t offset = 0;
    for (const Block* other : placed) {
      const bool together = other->first <= block.last && block.first <= other->last;
      if (!together || *other->offset + aligned(other->bytes) <= offset) continue;
      if (*other->offset >= offset + aligned(block.bytes)) break;
      offset = *other->offset + aligned(other->bytes);
    }
    *block.offset = offset;
    total = std::max(total, offset + aligned(block.bytes));
    const auto where = std::upper_bound(placed.begin(), placed.end(), offset,
                                        [](std::int64_t o, const Block* b) { return o < *b->offset; });
    placed.insert(where, &block);
  }
  return total;
}

}  // namespace

Plan give_memory(const ir::Graph& graph, Draft draft, const Target& target, const std::string& rules) {
  Plan plan;
  plan.name = graph.name(), plan.target = target, plan.rules = rules;
  plan.refusals = std::move(draft.refusals);
  plan.steps = std::move(draft.steps);
  const int end = static_cast<int>(plan.steps.size());
  for (DraftValue& value : draft.values) {
    PlanValue planned;
    planned.dtype = value.dtype, planned.bytes = value.bytes, planned.label = value.label;
    planned.data = std::move(value.data);
    planned.storage = value.kind == DraftKind::parameter  ? Storage::argument
                      : value.kind == DraftKind::constant ? Storage::constant
                                                          : Storage::arena;
    planned.index = value.parameter;
    planned.first_step = value.kind == DraftKind::temporary ? end : -1;
    plan.values.push_back(std::move(planned));
  }
  plan.parameters.assign(graph.parameters().size(), -1);
  for (std::size_t v = 0; v < draft.values.size(); ++v) {
    if (draft.values[v].kind == DraftKind::parameter) plan.parameters[static_cast<std::size_t>(draft.values[v].parameter)] = static_cast<int>(v);
  }
  for (int s = 0; s < end; ++s) {
    for (const int v : plan.steps[static_cast<std::size_t>(s)].values) {
      PlanValue& value = plan.values[static_cast<std::size_t>(v)];
      value.first_step = std::min(value.first_step, s), value.last_step = std::max(value.last_step, s);
    }
  }
  plan.results = draft.results;
  for (std::size_t r = 0; r < plan.results.size(); ++r) {
    PlanValue& value = plan.values[static_cast<std::size_t>(plan.results[r])];
    value.last_step = end;
    if (value.storage == Storage::arena) value.storage = Storage::result, value.index = static_cast<int>(r);
    if (value.storage == Storage::argument && graph.results()[r]->op != ir::Op::parameter) value.storage = Storage::donated;
    plan.bound_bytes += value.bytes;
  }
  std::vector<Block> blocks;
  for (PlanValue& value : plan.values) {
    if (value.storage == Storage::arena && value.bytes > 0) blocks.push_back({value.bytes, value.first_step, value.last_step, &value.offset});
    if (value.index >= 0 && value.last_step >= 0 && (value.storage == Storage::argument || value.storage == Storage::donated)) {
      plan.bound_bytes += value.bytes;
    }
  }
  for (int s = 0; s < end; ++s) {
    PlanStep& step = plan.steps[static_cast<std::size_t>(s)];
    if (step.work_bytes > 0) blocks.push_back({step.work_bytes, s, s, &step.work_offset});
  }
  plan.arena_bytes = place(std::move(blocks));
  return plan;
}

}  // namespace fusejit::scheduler
