#include "scheduler/draft/both_gradients.h"

#include <algorithm>
#include <map>
#include <optional>
#include <tuple>
#include <utility>

#include "ir/kernel/join/beside.h"
#include "ir/kernel/join/phases.h"
#include "scheduler/choose/choose.h"
#include "scheduler/fuse/gradients.h"

namespace fusejit::scheduler {
namespace {

class GradientJoiner {
 public:
  GradientJoiner(Draft& draft, const ir::Graph& graph, const Target& target, StepMaker& maker)
      : draft_(draft), graph_(graph), target_(target), maker_(maker) {}

  void run() {
    std::vector<PlanStep> steps;
    for (PlanStep& step : draft_.steps) {
      if (steps.empty() || !join(steps.back(), step)) steps.push_back(std::move(step));
    }
    draft_.steps = std::move(steps);
  }

 private:
  // The one contraction that a step computes; -1: there are others, or none.
  int anchor_of(const PlanStep& step) const {
    int found = -1;
    for (const int node : step.nodes) {
      if (!ir::op_def(graph_.value(node)->op).is_contraction()) continue;
      if (found >= 0 || step.library) return -1;
      found = node;
    }
    return found;
  }

  bool join(PlanStep& first, const PlanStep& second) {
    if (!gradients_meet(graph_, target_, anchor_of(first), anchor_of(second))) return false;
    const JoinedKernel& one = made(first, second);
    if (!one.kernel) return false;
    PlanStep joined = maker_.make_joined(one, first, second);
    joined.overwrites = first.overwrites;
    joined.overwrites.insert(joined.overwrites.end(), second.overwrites.begin(), second.overwrites.end());
    first = std::move(joined);
    return true;
  }

  // Equal pairs of kernels are joined once. No kernel: they cannot be joined, or are better apart.
  const JoinedKernel& made(const PlanStep& a, const PlanStep& b) {
    const std::vector<int> same = same_values(a, b);
    const auto [known, fresh] = made_.try_emplace({a.kernel.get(), b.kernel.get(), same});
    if (!fresh) return known->second;
    std::optional<ir::Joined> joined =
        ir::beside(join_phases(*a.kernel), *b.kernel, {same, std::vector<bool>(a.kernel->params.size())});
    if (!joined || !is_worth(a, b, *joined)) return known->second;
    known->second = named(std::move(*joined), graph_, a, b);
    return known->second;
  }
  bool is_worth(const PlanStep& a, const PlanStep& b, const ir::Joined& joined) const {
    const std::int64_t together = moved_bytes(joined.kernel), apart = moved_bytes(a) + moved_bytes(b);
    return is_much_of(apart - together, apart, target_) && together / joined.rounds <= bytes_of_round(target_);
  }

  Draft& draft_;
  const ir::Graph& graph_;
  const Target& target_;
  StepMaker& maker_;
  std::map<std::tuple<const ir::Kernel*, const ir::Kernel*, std::vector<int>>, JoinedKernel> made_;
};

}  // namespace

void join_gradients(Draft& draft, const ir::Graph& graph, const Target& target, StepMaker& steps) {
  GradientJoiner(draft, graph, target, steps).run();
}

}  // namespace fusejit::scheduler
