#include "scheduler/plan.h"

#include <algorithm>

#include "ir/base/check.h"

namespace fusejit::scheduler {

std::int64_t Plan::ledger_bytes() const {
  std::int64_t total = 0;
  for (const PlanStep& step : steps) total += step.read_bytes + step.written_bytes;
  return total;
}

std::int64_t live_arena_bytes_after(const Plan& plan, int step) {
  std::int64_t total = 0;
  for (const PlanValue& value : plan.values) {
    if (value.storage == Storage::arena && value.first_step <= step && value.last_step > step) total += value.bytes;
  }
  return total;
}

// P1 every buffer of a kernel has a value of its dtype and size, and no two buffers of a step share bytes;
// P2 arena values that are alive together do not overlap, work areas included, and lie inside the arena;
// P3 a value is written by its first step before any step reads it;
// P4 arguments are read only; donated ones are updated only by their last step;
// P5 every result has storage.
void verify(const Plan& plan) {
  struct Range {
    std::int64_t offset, bytes;
    int first, last;
    std::string label;
  };
  std::vector<Range> ranges;
  const auto fail = [&](const std::string& sentence) { throw InternalError("plan @" + plan.name + ": " + sentence); };
  for (std::size_t s = 0; s < plan.steps.size(); ++s) {
    const PlanStep& step = plan.steps[s];
    std::size_t next = 0;
    for (const ir::KernelParam& param : step.kernel->params) {
      if (param.memory < 0) continue;
      const ir::Memory& memory = step.kernel->memories[static_cast<std::size_t>(param.memory)];
      if (next >= step.values.size()) fail(fmt::format("P1: step {} has too few values", s));
      const int id = step.values[next++];
      if (id < 0 || id >= static_cast<int>(plan.values.size())) fail(fmt::format("P1: step {} @{}: a buffer without value", s, step.kernel->name));
      const PlanValue& value = plan.values[static_cast<std::size_t>(id)];
      if (bytes(memory.dtype, memory.elements()) > value.bytes) {
        fail(fmt::format("P1: step {} @{} declares {} bytes for {} of {}", s, step.kernel->name, bytes(memory.dtype, memory.elements()), value.label, value.bytes));
      }
      const bool reads = memory.kind != ir::MemKind::write, writes = memory.kind != ir::MemKind::read;
      const bool first = value.first_step == static_cast<int>(s);
      if (reads && first && value.storage != Storage::argument && value.storage != Storage::donated && value.storage != Storage::constant) {
        fail(fmt::format("P3: step {} @{} reads {} before it is written", s, step.kernel->name, value.label));
      }
      if (writes && (value.storage == Storage::argument || value.storage == Storage::constant)) {
        fail(fmt::format("P4: step {} @{} writes {}", s, step.kernel->name, value.label));
      }
    }
    std::vector<int> sorted = step.values;
    std::sort(sorted.begin(), sorted.end());
    if (std::adjacent_find(sorted.begin(), sorted.end()) != sorted.end()) fail(fmt::format("P1: step {} uses a value twice", s));
    if (step.work_bytes > 0) ranges.push_back({step.work_offset, step.work_bytes, static_cast<int>(s), static_cast<int>(s), "work of @" + step.kernel->name});
  }
  for (const PlanValue& value : plan.values) {
    if (value.storage == Storage::arena && value.bytes > 0 && value.last_step >= 0) ranges.push_back({value.offset, value.bytes, value.first_step, value.last_step, value.label});
  }
  std::sort(ranges.begin(), ranges.end(), [](const Range& a, const Range& b) { return a.offset < b.offset; });
  for (std::size_t i = 0; i < ranges.size(); ++i) {
    const Range& a = ranges[i];
    if (a.offset < 0 || a.offset + a.bytes > plan.arena_bytes) fail("P2: " + a.label + " lies outside the arena");
    for (std::size_t j = i + 1; j < ranges.size() && ranges[j].offset < a.offset + a.bytes; ++j) {
      if (ranges[j].first <= a.last && a.first <= ranges[j].last) fail("P2: " + a.label + " and " + ranges[j].label + " overlap");
    }
  }
  for (const int result : plan.results) {
    if (result < 0) fail("P5: a result without storage");
  }
}

namespace {

std::string storage_text(const PlanValue& value) {
  switch (value.storage) {
    case Storage::argument: return fmt::format("argument {}", value.index);
    case Storage::donated: return fmt::format("donated {}", value.index);
    case Storage::result: return fmt::format("result {}", value.index);
    case Storage::constant: return "constant";
    case Storage::arena: return fmt::format("arena {}", value.offset);
  }
  return "";
}

}  // namespace

std::string print(const Plan& plan) {
  std::string out = fmt::format("plan @{} on {} rules={} {{\n", plan.name, plan.target.str(), plan.rules);
  for (std::size_t v = 0; v < plan.values.size(); ++v) {
    const PlanValue& value = plan.values[v];
    out += fmt::format("  value {} {} {} bytes, {}, steps {}..{}  ; {}\n", v, name(value.dtype), value.bytes, storage_text(value),
                       value.first_step, value.last_step, value.label);
  }
  for (std::size_t s = 0; s < plan.steps.size(); ++s) {
    const PlanStep& step = plan.steps[s];
    out += fmt::format("  step {} @{}({})  ; {}; reads {}, writes {} bytes\n", s, step.kernel->name, fmt::join(step.values, ", "),
                       fmt::join(step.ops, ", "), step.read_bytes, step.written_bytes);
  }
  out += fmt::format("  return {}\n  ; arena {} bytes, ledger {} bytes, bound {} bytes\n}}\n", fmt::join(plan.results, ", "),
                     plan.arena_bytes, plan.ledger_bytes(), plan.bound_bytes);
  return out;
}

}  // namespace fusejit::scheduler
