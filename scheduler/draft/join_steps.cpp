#include "scheduler/draft/join_steps.h"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

#include "ir/base/at.h"
#include "ir/kernel/join/join.h"
#include "scheduler/choose/choose.h"
#include "scheduler/fuse/group.h"
#include "scheduler/uses.h"

namespace fusejit::scheduler {
namespace {

class Joiner {
 public:
  Joiner(Draft& draft, const ir::Graph& graph, const Target& target, const std::vector<bool>& fixed, StepMaker& maker)
      : draft_(draft), graph_(graph), target_(target), maker_(maker), gone_(draft.steps.size()) {
    const std::size_t count = draft.values.size();
    readers_.resize(count), writer_.assign(count, -1), is_fixed_.resize(count), is_result_.resize(count);
    for (const int v : draft.results) is_result_[at(v)] = true;
    for (std::size_t v = 0; v < count; ++v) {
      const DraftValue& value = draft.values[v];
      is_fixed_[v] =
          value.kind == DraftKind::constant ||
          (value.kind == DraftKind::parameter && at(value.parameter) < fixed.size() && fixed[at(value.parameter)]);
    }
    for (const PlanStep& step : draft.steps) count_reads(step, 1);
    for (const Refusal& refusal : draft.refusals)
      if (refusal.code == RefusalCode::reduction_barrier) barriers_[refusal.producer].insert(refusal.consumer);
  }

  void run() {
    for (int s = 0; s < static_cast<int>(draft_.steps.size()); ++s) {
      const int before = last_producer(s);
      if (before >= 0 && may_join(before, s) && join(before, s)) {
        gone_[at(s)] = true;
        settle(before);
      } else {
        settle(s);
      }
    }
    forget_refusals();
    std::size_t kept = 0;
    for (std::size_t s = 0; s < gone_.size(); ++s) {
      if (gone_[s]) continue;
      if (kept != s) draft_.steps[kept] = std::move(draft_.steps[s]);
      ++kept;
    }
    draft_.steps.resize(kept);
  }

 private:
  const PlanStep& step(int s) const { return draft_.steps[at(s)]; }

  void count_reads(const PlanStep& step, int by) {
    for_each_use(step, [&](int v, ir::MemKind kind) { readers_[at(v)] += kind == ir::MemKind::write ? 0 : by; });
  }

  // Parts of a concatenation count as all of it.
  int memory_of(int v) const {
    const int around = draft_.values[at(v)].inside;
    return around >= 0 ? around : v;
  }

  // What step `s` leaves behind.
  void settle(int s) {
    bool fixed = true;
    for_each_use(step(s),
                 [&](int v, ir::MemKind kind) { fixed = fixed && (kind == ir::MemKind::write || is_fixed_[at(v)]); });
    for_each_use(step(s), [&](int v, ir::MemKind kind) {
      if (kind == ir::MemKind::read) return;
      writer_[at(v)] = writer_[at(memory_of(v))] = s, is_fixed_[at(v)] = fixed;
    });
  }

  // Of what step `s` reads: the last step that wrote any, and that it can follow at once.
  int last_producer(int s) const {
    int last = -1;
    for_each_use(step(s), [&](int v, ir::MemKind kind) {
      if (kind != ir::MemKind::write) last = std::max({last, writer_[at(v)], writer_[at(memory_of(v))]});
    });
    return last;
  }

  static bool has_no_anchor(const PlanStep& step) {
    return !step.library && !step.schedules.empty() &&
           std::all_of(step.schedules.begin(), step.schedules.end(),
                       [](const ScheduledWork& one) { return one.kind == Work::domain; });
  }

  bool may_join(int a, int b) const {
    if (!has_no_anchor(step(a)) || !has_no_anchor(step(b)) || !needs_finished(step(a), step(b)) ||
        step(a).ops.size() + step(b).ops.size() > kMostLength)
      return false;
    const std::vector<int>& made_of = step(a).values;
    if (std::all_of(made_of.begin(), made_of.end(), [&](int v) { return is_fixed_[at(v)]; })) return false;
    // b moves up to a: what it overwrites must not be read in between.
    std::set<int> overwritten;
    for (const Overwritten& one : step(b).overwrites) overwritten.insert(memory_of(one.value));
    for (int s = a + 1; s < b && !overwritten.empty(); ++s) {
      if (gone_[at(s)]) continue;
      for (const int v : step(s).values)
        if (overwritten.contains(memory_of(v))) return false;
    }
    return true;
  }

  // `b` reads a finished reduction of `a`.
  bool needs_finished(const PlanStep& a, const PlanStep& b) const {
    return std::any_of(a.ops.begin(), a.ops.end(), [&](const std::string& op) {
      const auto consumers = barriers_.find(op);
      return consumers != barriers_.end() && std::any_of(b.ops.begin(), b.ops.end(), [&](const std::string& reader) {
               return consumers->second.contains(reader);
             });
    });
  }

  // Equal pairs of kernels are joined once. No kernel: they cannot be joined.
  const JoinedKernel& made(const PlanStep& a, const PlanStep& b, const ir::Joint& joint) {
    const auto [known, fresh] = made_.try_emplace({a.kernel.get(), b.kernel.get(), joint.same, joint.inner});
    if (!fresh) return known->second;
    std::optional<ir::Joined> joined = ir::join(*a.kernel, *b.kernel, joint);
    if (!joined || !is_worth(a, b, *joined)) return known->second;
    known->second = named(std::move(*joined), graph_, a, b);
    return known->second;
  }

  bool is_worth(const PlanStep& a, const PlanStep& b, const ir::Joined& joined) const {
    const std::int64_t together = moved_bytes(joined.kernel);
    return together < moved_bytes(a) + moved_bytes(b) && together / joined.rounds <= bytes_of_round(target_);
  }

  bool join(int a, int b) {
    PlanStep& first = draft_.steps[at(a)];
    PlanStep& second = draft_.steps[at(b)];
    ir::Joint joint;
    joint.same = same_values(first, second);
    for_each_use(first, [&](int v, ir::MemKind kind) {
      const bool read_by_second = std::find(second.values.begin(), second.values.end(), v) != second.values.end();
      joint.inner.push_back(kind == ir::MemKind::write && !is_result_[at(v)] &&
                            readers_[at(v)] == (read_by_second ? 1 : 0));
    });
    const JoinedKernel& one = made(first, second, joint);
    if (!one.kernel) return false;
    PlanStep joined = maker_.make_joined(one, first, second);
    leave(joined, first.overwrites), leave(joined, second.overwrites);
    count_reads(first, -1), count_reads(second, -1), count_reads(joined, 1);
    first = std::move(joined);
    joined_.insert(a);
    return true;
  }

  // What the joined step leaves in values that its parts overwrite: the last of it. Where the first part made the
  // value, that is what it holds first.
  void leave(PlanStep& joined, const std::vector<Overwritten>& overwrites) {
    for (const Overwritten& one : overwrites) {
      const auto said = std::find_if(joined.overwrites.begin(), joined.overwrites.end(),
                                     [&](const Overwritten& other) { return other.value == one.value; });
      bool updates = false;
      for_each_use(joined, [&](int v, ir::MemKind kind) {
        updates = updates || (v == one.value && kind == ir::MemKind::update);
      });
      if (!updates) {
        draft_.values[at(one.value)].label = one.label;
      } else if (said != joined.overwrites.end()) {
        said->label = one.label;
      } else {
        joined.overwrites.push_back(one);
      }
    }
  }

  void forget_refusals() {
    std::map<std::string, std::set<int>> steps_of;  // of the joined ones, by what they compute
    for (const int s : joined_) {
      for (const std::string& op : step(s).ops) steps_of[op].insert(s);
    }
    std::erase_if(draft_.refusals, [&](const Refusal& refusal) {
      const auto producers = steps_of.find(refusal.producer), consumers = steps_of.find(refusal.consumer);
      if (producers == steps_of.end() || consumers == steps_of.end()) return false;
      return std::any_of(producers->second.begin(), producers->second.end(),
                         [&](int s) { return consumers->second.contains(s); });
    });
  }

  Draft& draft_;
  const ir::Graph& graph_;
  const Target& target_;
  StepMaker& maker_;
  std::vector<bool> gone_;
  std::vector<int> readers_, writer_;  // by value: steps that read it; the last that wrote it so far
  std::vector<bool> is_fixed_, is_result_;
  std::set<int> joined_;
  std::map<std::string, std::set<std::string>> barriers_;  // who needs the finished reduction
  std::map<std::tuple<const ir::Kernel*, const ir::Kernel*, std::vector<int>, std::vector<bool>>, JoinedKernel> made_;
};

}  // namespace

void join_steps(Draft& draft, const ir::Graph& graph, const Target& target, const std::vector<bool>& fixed,
                StepMaker& steps) {
  Joiner(draft, graph, target, fixed, steps).run();
}

}  // namespace fusejit::scheduler
