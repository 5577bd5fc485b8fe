// Storage of a plan's values: arguments and results by reference, everything else in one arena, where values that are
// never alive together share addresses. Largest first, lowest free offset: simple, and within a few per cent of the
// bound on convolutional networks.
#include <algorithm>
#include <map>
#include <numeric>

#include "ir/base/check.h"
#include "scheduler/draft.h"
#include "scheduler/uses.h"

namespace fusejit::scheduler {
namespace {

constexpr std::int64_t kAlignment = 64;

std::int64_t aligned(std::int64_t bytes) { return (bytes + kAlignment - 1) / kAlignment * kAlignment; }

struct Block {
  std::int64_t bytes;
  int first, last;
  std::int64_t* offset;
};

// Addresses that are taken: disjoint spans, those that touch joined, so that blocks side by side are one.
class Taken {
 public:
  void add(std::int64_t low, std::int64_t high) {
    auto next = spans_.upper_bound(low);
    if (next != spans_.begin() && std::prev(next)->second >= low) --next;
    while (next != spans_.end() && next->first <= high) {
      low = std::min(low, next->first), high = std::max(high, next->second);
      next = spans_.erase(next);
    }
    spans_.emplace_hint(next, low, high);
  }
  // The end of the last span that low..high meets, `low` if it meets none.
  std::int64_t past(std::int64_t low, std::int64_t high) const {
    const auto next = spans_.lower_bound(high);
    return next == spans_.begin() ? low : std::max(low, std::prev(next)->second);
  }

 private:
  std::map<std::int64_t, std::int64_t> spans_;  // end by start
};

// What is taken, by the steps that it is taken in: a segment tree. Of blocks and steps that meet, one of the nodes that
// make up the one lies above or below one of those that make up the other.
class Lives {
 public:
  explicit Lives(int steps) : steps_(steps), nodes_(2 * static_cast<std::size_t>(steps)) {}

  void add(const Block& block) {
    const std::int64_t low = *block.offset, high = low + aligned(block.bytes);
    for (const int made_of : cover(block.first, block.last)) {
      node(made_of).whole.add(low, high);
      for (int above = made_of; above > 0; above /= 2) node(above).inside.add(low, high);
    }
  }
  // The lowest offset that is free in all steps of the block.
  std::int64_t lowest_free(const Block& block) {
    std::vector<const Taken*> taken;
    for (const int made_of : cover(block.first, block.last)) taken.push_back(&node(made_of).inside);
    for (const int end : {block.first, block.last})
      for (int above = end + steps_; above > 0; above /= 2) taken.push_back(&node(above).whole);
    std::int64_t offset = 0;
    for (bool moved = true; moved;) {
      moved = false;
      for (const Taken* t : taken) {
        const std::int64_t next = t->past(offset, offset + aligned(block.bytes));
        moved = moved || next > offset;
        offset = next;
      }
    }
    return offset;
  }

 private:
  struct Node {
    Taken whole;   // in all steps of the node
    Taken inside;  // in some of them, by blocks that this node or nodes below it make up
  };
  Node& node(int at) { return nodes_[static_cast<std::size_t>(at)]; }
  std::vector<int> cover(int first, int last) const {
    std::vector<int> nodes;
    int low = first + steps_, high = last + steps_ + 1;
    for (; low < high; low /= 2, high /= 2) {
      if (low % 2 == 1) nodes.push_back(low++);
      if (high % 2 == 1) nodes.push_back(--high);
    }
    return nodes;
  }
  int steps_;
  std::vector<Node> nodes_;
};

std::int64_t place(std::vector<Block> blocks, int steps) {
  std::stable_sort(blocks.begin(), blocks.end(), [](const Block& a, const Block& b) { return a.bytes > b.bytes; });
  Lives placed(steps);
  std::int64_t total = 0;
  for (const Block& block : blocks) {
    *block.offset = placed.lowest_free(block);
    total = std::max(total, *block.offset + aligned(block.bytes));
    placed.add(block);
  }
  return total;
}

// Temporaries and constants that no step uses and no result is: the inner values of groups. They leave the draft.
void drop_unused(Draft& draft) {
  std::vector<bool> used(draft.values.size());
  for (std::size_t v = 0; v < used.size(); ++v) used[v] = draft.values[v].kind == DraftKind::parameter;
  for (const PlanStep& step : draft.steps)
    for (const int v : step.values) used[static_cast<std::size_t>(v)] = true;
  for (const int v : draft.results) used[static_cast<std::size_t>(v)] = true;
  std::vector<int> moved(used.size(), -1);
  std::vector<DraftValue> kept;
  for (std::size_t v = 0; v < used.size(); ++v) {
    if (!used[v]) continue;
    moved[v] = static_cast<int>(kept.size());
    kept.push_back(std::move(draft.values[v]));
  }
  draft.values = std::move(kept);
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
    planned.index = value.parameter;
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
  plan.results = draft.results;
  for (std::size_t r = 0; r < plan.results.size(); ++r) {
    PlanValue& value = plan.values[static_cast<std::size_t>(plan.results[r])];
    value.last_step = end;
    if (value.storage == Storage::arena) value.storage = Storage::result, value.index = static_cast<int>(r);
    if (value.storage == Storage::argument && graph.results()[r]->op != ir::Op::parameter)
      value.storage = Storage::donated;
  }
  if (!fixed.empty()) find_derived(plan, fixed);
  std::vector<Block> blocks;
  for (PlanValue& value : plan.values) {
    if (value.storage == Storage::arena && value.bytes > 0)
      blocks.push_back({value.bytes, value.first_step, value.last_step, &value.offset});
  }
  for (int s = 0; s < end; ++s) {
    PlanStep& step = plan.steps[static_cast<std::size_t>(s)];
    if (step.work_bytes > 0) blocks.push_back({step.work_bytes, s, s, &step.work_offset});
  }
  plan.arena_bytes = place(std::move(blocks), end);
  return plan;
}

}  // namespace fusejit::scheduler
