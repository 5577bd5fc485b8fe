// What every Plan obeys, whoever made it:
//   P1 typed      a step has a value for every buffer of its kernel, of its dtype and size, and none twice
//   P2 apart      arena values that are alive together do not overlap, work included, and lie inside the arena; what
//                 lies in the memory of another ends with it, and lives while that does
//   P3 order      a value is used between its first step and its last, and its first step only writes it, or a part of
//                 it, unless it comes from outside
//   P4 outside    arguments and constants are only read; a constant has its bytes
//   P5 door       every parameter and result has storage of its own kind, with its number
//   P6 library    what a library may do in place of a kernel is a graph on values of the step, masks as bits
//   P7 derived    a derived value is written by its first step alone, from its parameter and constants alone
//   P8 contents   a step says what it leaves in each value that it updates, and in no other
#include <algorithm>
#include <map>

#include "ir/base/check.h"
#include "scheduler/plan.h"

namespace fusejit::scheduler {
namespace {

class Verifier {
 public:
  explicit Verifier(const Plan& plan) : plan_(plan), steps_(static_cast<int>(plan.steps.size())) {}

  void run() const {
    for (int s = 0; s < steps_; ++s) check_step(s);
    for (std::size_t v = 0; v < plan_.values.size(); ++v) check_value(static_cast<int>(v));
    check_door();
    check_arena();
  }

 private:
  template <class... Args>
  [[noreturn]] void fail(std::string_view rule, fmt::format_string<Args...> sentence, Args&&... args) const {
    throw InternalError(
        fmt::format("plan @{}: {}: {}", plan_.name, rule, fmt::format(sentence, std::forward<Args>(args)...)));
  }
  const PlanValue& value(int id) const {
    if (id < 0 || id >= static_cast<int>(plan_.values.size())) fail("P1", "there is no value {}", id);
    return plan_.values[static_cast<std::size_t>(id)];
  }

  void check_step(int s) const {
    const PlanStep& step = plan_.steps[static_cast<std::size_t>(s)];
    std::size_t next = 0;
    std::vector<int> updated, told;
    for (const ir::KernelParam& param : step.kernel->params) {
      if (param.memory < 0) continue;
      if (next == step.values.size()) fail("P1", "step {} has too few values", s);
      const ir::Memory& memory = step.kernel->memories[static_cast<std::size_t>(param.memory)];
      if (memory.kind == ir::MemKind::update) updated.push_back(step.values[next]);
      check_use(s, step, memory, value(step.values[next++]));
    }
    for (const Overwritten& overwritten : step.overwrites) told.push_back(overwritten.value);
    std::sort(updated.begin(), updated.end()), std::sort(told.begin(), told.end());
    if (updated != told)
      fail("P8", "step {} says what it leaves in {} and updates {}", s, fmt::join(told, ", "),
           fmt::join(updated, ", "));
    if (next != step.values.size()) fail("P1", "step {} has too many values", s);
    std::vector<int> sorted = step.values;
    std::sort(sorted.begin(), sorted.end());
    if (std::adjacent_find(sorted.begin(), sorted.end()) != sorted.end()) fail("P1", "step {} uses a value twice", s);
    if (step.library) check_library(s, step.values, *step.library);
  }

  void check_library(int s, const std::vector<int>& step_values, const LibraryOp& library) const {
    const ir::Graph& graph = library.graph;
    const std::size_t parameters = graph.parameters().size();
    if (library.values.size() != parameters + graph.results().size())
      fail("P6", "step {}: the call has {} values", s, library.values.size());
    for (std::size_t i = 0; i < library.values.size(); ++i) {
      const Type& type = (i < parameters ? graph.parameters()[i] : graph.results()[i - parameters]).type();
      const PlanValue& v = value(library.values[i]);
      const DType dtype = type.dtype == DType::boolean ? DType::b1 : type.dtype;
      if (std::count(step_values.begin(), step_values.end(), library.values[i]) == 0 || dtype != v.dtype ||
          bytes(dtype, type.elements()) != v.bytes)
        fail("P6", "step {}: {} is no {} of the step", s, v.label, type.str());
    }
  }

  void check_use(int s, const PlanStep& step, const ir::Memory& memory, const PlanValue& value) const {
    const std::int64_t declared = bytes(memory.dtype, memory.elements());
    // Two elements of 16 bits as one word (kernel-ir.md, 3).
    const bool words = memory.dtype == DType::u32 && memory.kind == ir::MemKind::read && bits(value.dtype) == 16;
    const std::int64_t taken = value.inside >= 0 ? this->value(value.inside).bytes : value.bytes;
    if ((memory.dtype != value.dtype && !words) || declared != taken) {
      fail("P1", "step {} @{} declares {} bytes of {} for {}, which has {} of {}", s, step.kernel->name, declared,
           name(memory.dtype), value.label, value.bytes, name(value.dtype));
    }
    const bool reads = memory.kind != ir::MemKind::write, writes = memory.kind != ir::MemKind::read;
    const bool outside =
        value.storage == Storage::argument || value.storage == Storage::donated || value.storage == Storage::constant;
    if (s < value.first_step || s > value.last_step)
      fail("P3", "step {} @{} uses {} outside its life", s, step.kernel->name, value.label);
    const bool part = value.inside >= 0 && (memory.kind == ir::MemKind::update || was_written_before(s, value));
    if (reads && !part && !outside && s == value.first_step)
      fail("P3", "step {} @{} reads {} before it is written", s, step.kernel->name, value.label);
    if (writes && outside && value.storage != Storage::donated)
      fail("P4", "step {} @{} writes {}", s, step.kernel->name, value.label);
    if (writes && value.storage == Storage::derived && s != value.first_step)
      fail("P7", "step {} @{} writes {} again", s, step.kernel->name, value.label);
  }

  void check_value(int id) const {
    const PlanValue& v = value(id);
    if (v.last_step > steps_) fail("P3", "{} is used after the last step", v.label);
    if (v.last_step >= 0 && v.last_step < v.first_step) fail("P3", "{} ends before it begins", v.label);
    const bool derived = v.storage == Storage::derived;
    const bool made = v.storage == Storage::result || derived || (v.storage == Storage::arena && v.last_step >= 0);
    if (made && !is_used_by(v.first_step, id) && !holds_another(id)) fail("P3", "nothing writes {}", v.label);
    if (derived) check_derivation(v, id);
    if (v.inside >= 0) check_inside(v, value(v.inside));
    if (v.storage == Storage::constant && static_cast<std::int64_t>(v.data.size()) != v.bytes)
      fail("P4", "{} has {} bytes of data", v.label, v.data.size());
    const bool takes = v.storage == Storage::argument || v.storage == Storage::donated;
    if (takes && !stands(plan_.parameters, v.index, id)) fail("P5", "{} is not parameter {}", v.label, v.index);
    if (v.storage == Storage::result && !stands(plan_.results, v.index, id))
      fail("P5", "{} is not result {}", v.label, v.index);
  }
  // Some of the memory that it lies in.
  bool was_written_before(int s, const PlanValue& v) const { return value(v.inside).first_step < s; }
  void check_inside(const PlanValue& v, const PlanValue& around) const {
    const bool begins = v.offset >= around.offset && v.bytes > 0 && v.offset + v.bytes == around.offset + around.bytes;
    const bool lives = v.first_step >= around.first_step && v.last_step <= around.last_step;
    if (around.storage != Storage::arena || around.inside >= 0 || v.storage != Storage::arena || !begins || !lives)
      fail("P2", "{} is not inside {}", v.label, around.label);
  }
  void check_derivation(const PlanValue& v, int id) const {
    for (const int other : plan_.steps[static_cast<std::size_t>(v.first_step)].values) {
      const PlanValue& used = value(other);
      const bool its_source = used.storage == Storage::argument && used.index == v.index;
      if (other != id && !its_source && used.storage != Storage::constant)
        fail("P7", "{} depends on {}, not on parameter {} alone", v.label, used.label, v.index);
    }
  }
  bool holds_another(int id) const {
    return std::any_of(plan_.values.begin(), plan_.values.end(), [&](const PlanValue& v) { return v.inside == id; });
  }
  bool is_used_by(int s, int id) const {
    if (s < 0 || s >= steps_) return false;
    const std::vector<int>& values = plan_.steps[static_cast<std::size_t>(s)].values;
    return std::find(values.begin(), values.end(), id) != values.end();
  }
  static bool stands(const std::vector<int>& list, int index, int id) {
    return index >= 0 && index < static_cast<int>(list.size()) && list[static_cast<std::size_t>(index)] == id;
  }

  void check_door() const {
    for (const int parameter : plan_.parameters) {
      const Storage storage = value(parameter).storage;
      if (storage != Storage::argument && storage != Storage::donated) fail("P5", "a parameter is no argument");
    }
    for (const int result : plan_.results) {
      const Storage storage = value(result).storage;
      if (storage == Storage::arena || storage == Storage::derived) fail("P5", "a result is a temporary");
    }
  }

  // A sweep over the steps that keeps what is alive, by offset.
  void check_arena() const {
    struct Range {
      std::int64_t offset, bytes;
      int first, last;
      std::string label;
    };
    std::vector<Range> ranges;
    for (const PlanValue& v : plan_.values) {
      if (v.storage == Storage::arena && v.bytes > 0 && v.last_step >= 0 && v.inside < 0)
        ranges.push_back({v.offset, v.bytes, v.first_step, v.last_step, v.label});
    }
    for (int s = 0; s < steps_; ++s) {
      const PlanStep& step = plan_.steps[static_cast<std::size_t>(s)];
      if (step.work_bytes > 0)
        ranges.push_back({step.work_offset, step.work_bytes, s, s, "work of @" + step.kernel->name});
    }
    for (const Range& range : ranges) {
      if (range.offset < 0 || range.bytes > plan_.arena_bytes || range.offset > plan_.arena_bytes - range.bytes)
        fail("P2", "{} lies outside the arena", range.label);
    }
    std::sort(ranges.begin(), ranges.end(), [](const Range& a, const Range& b) { return a.first < b.first; });
    const auto count = ranges.size();
    std::vector<const Range*> by_end(count);
    for (std::size_t i = 0; i < count; ++i) by_end[i] = &ranges[i];
    std::sort(by_end.begin(), by_end.end(), [](const Range* a, const Range* b) { return a->last < b->last; });
    std::map<std::int64_t, const Range*> alive;
    std::size_t ended = 0;
    for (const Range& range : ranges) {
      for (; ended < count && by_end[ended]->last < range.first; ++ended) alive.erase(by_end[ended]->offset);
      const auto after = alive.lower_bound(range.offset);
      if (after != alive.end() && after->first < range.offset + range.bytes)
        fail("P2", "{} and {} overlap", range.label, after->second->label);
      if (after != alive.begin()) {
        const Range& before = *std::prev(after)->second;
        if (before.offset + before.bytes > range.offset) fail("P2", "{} and {} overlap", before.label, range.label);
      }
      alive.emplace_hint(after, range.offset, &range);
    }
  }

  const Plan& plan_;
  const int steps_;
};

}  // namespace

void verify(const Plan& plan) { Verifier(plan).run(); }

}  // namespace fusejit::scheduler
