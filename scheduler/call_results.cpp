#include "scheduler/call_results.h"

#include <algorithm>
#include <set>

#include "ir/base/at.h"
#include "ir/passes/passes.h"
#include "scheduler/fuse/masks.h"

namespace fusejit::scheduler {
namespace {

class Finder {
 public:
  Finder(const ir::Graph& graph, const Target& target, const LibrarySupports& supports, const std::vector<bool>& alone,
         const Rules& rules)
      : graph_(graph),
        target_(target),
        supports_(supports),
        alone_(alone),
        rules_(rules),
        users_(at(graph.value_count())) {
    for (int v = 0; v < graph.value_count(); ++v)
      for (const int operand : graph.operands(v))
        if (operand >= 0) users_[at(operand)].push_back(v);
  }

  // Masks are met before what they are applied to.
  std::vector<CallResult> run() {
    const bool compiled = target_.cudnn == CudnnMode::compiled;
    for (int v = graph_.value_count() - 1; v >= 0; --v) {
      const ir::Op op = graph_.value(v)->op;
      if (is_alone(v)) continue;
      if (op == ir::Op::where && compiled) find_masked(v);
      if (op == ir::Op::add && compiled && !taken_.contains(v)) find(v, -1, {v});
      if (op == ir::Op::conv2d && target_.fast_norm && runs_in_library(graph_, target_, v)) find_statistics(v);
    }
    return std::move(found_);
  }

 private:
  // where(mask, kept, 0), or the other way round; its mask is computed, and read by nobody else where it is to be bits.
  void find_masked(int v) {
    const ir::Node& node = *graph_.value(v);
    const auto is_nought = [&](std::size_t i) { return node.operands[i].is_number() && node.operands[i].number == 0; };
    const int mask = graph_.operands(v)[0], kept = graph_.operands(v)[is_nought(1) ? 2 : 1];
    if (mask < 0 || kept < 0 || (!is_nought(1) && !is_nought(2)) || is_alone(mask)) return;
    const ir::Node& condition = *graph_.value(mask);
    std::set<int> inside{v};
    if (users_[at(kept)].size() == 1) inside.insert(kept);
    if (ir::asks_output(condition)) {
      inside.insert(mask);
      return find(v, -1, std::move(inside));
    }
    const bool to_be_bits = rules_.has(Rule::masks) && users_[at(mask)].size() == 1 &&
                            ir::op_def(condition.op).family == ir::Family::elementwise;
    if (to_be_bits) find(v, mask, std::move(inside));
  }

  // `inside`: the result and what is computed on the way from the gradient to it. Where two gradients are added, the
  // one whose call adds up a channel too.
  void find(int result, int mask, std::set<int> inside) {
    std::set<int> anchors;
    for (const int v : inside)
      for (const int operand : graph_.operands(v)) {
        const bool adds = inside.contains(operand) && graph_.value(operand)->op == ir::Op::add;
        if (is_call(operand) && !adds) anchors.insert(operand);
      }
    std::erase_if(anchors, [&](int anchor) { return !supports(anchor, inside, {result}); });
    if (anchors.empty()) return;
    const std::vector<int> sum = sum_of(result);
    std::set<int> with_sum = inside;
    with_sum.insert(sum.begin(), sum.end());
    const auto adds_up = [&](int anchor) { return supports(anchor, with_sum, {result, sum.back()}); };
    const auto best = sum.empty() ? anchors.begin() : std::find_if(anchors.begin(), anchors.end(), adds_up);
    const int anchor = best == anchors.end() ? *anchors.begin() : *best;
    taken_.insert(anchor), taken_.insert(inside.begin(), inside.end());
    found_.push_back({anchor, result, mask});
  }

  // Σ y and Σ y² of a convolution y, as passes/library_statistics.cpp writes them.
  void find_statistics(int v) {
    for (const int wide : users_[at(v)]) {
      if (graph_.value(wide)->op != ir::Op::cast) continue;
      int sum = -1, square = -1, squares = -1;
      for (const int user : users_[at(wide)]) {
        const ir::Op op = graph_.value(user)->op;
        if (op == ir::Op::sum) sum = user;
        if (op != ir::Op::mul || graph_.operands(user)[0] != graph_.operands(user)[1]) continue;
        for (const int next : users_[at(user)])
          if (graph_.value(next)->op == ir::Op::sum) square = user, squares = next;
      }
      if (sum < 0 || squares < 0 || is_alone(sum) || is_alone(squares)) continue;
      if (supports(v, {wide, sum, square, squares}, {v, sum, squares}))
        return found_.push_back({v, v, -1, {sum, squares}});
    }
  }

  bool is_call(int v) const {
    return v >= 0 && graph_.value(v)->op == ir::Op::conv2d_input_grad && users_[at(v)].size() == 1 && !is_alone(v) &&
           !taken_.contains(v) && runs_in_library(graph_, target_, v);
  }
  bool supports(int anchor, std::set<int> inside, const std::vector<int>& results) const {
    inside.insert(anchor);
    return supports_(capture_call(graph_, inside, results).graph, target_).ok;
  }
  // A sum of its elements, and the cast before it; empty: there is none.
  std::vector<int> sum_of(int v) const {
    for (const int user : users_[at(v)]) {
      if (graph_.value(user)->op == ir::Op::sum) return {user};
      if (graph_.value(user)->op != ir::Op::cast) continue;
      for (const int next : users_[at(user)])
        if (graph_.value(next)->op == ir::Op::sum) return {user, next};
    }
    return {};
  }
  bool is_alone(int v) const { return !alone_.empty() && alone_[at(v)]; }

  const ir::Graph& graph_;
  const Target& target_;
  const LibrarySupports& supports_;
  const std::vector<bool>& alone_;
  const Rules& rules_;
  std::vector<std::vector<int>> users_;
  std::set<int> taken_;  // what is computed on the way to a result that was found
  std::vector<CallResult> found_;
};

}  // namespace

std::vector<CallResult> find_call_results(const ir::Graph& graph, const Target& target, const LibrarySupports& supports,
                                          const std::vector<bool>& alone, const Rules& rules) {
  const bool knows_more = target.cudnn == CudnnMode::compiled || (target.cudnn != CudnnMode::off && target.fast_norm);
  const bool asks = knows_more && supports && rules.has(Rule::epilogue);
  return asks ? Finder(graph, target, supports, alone, rules).run() : std::vector<CallResult>{};
}

std::vector<CallResult> fit_call_results(const ir::Graph& graph, const Target& target, const Grouping& grouping) {
  std::vector<CallResult> fit;
  for (const CallResult& asked : grouping.call_results) {
    const int call = grouping.group_of[at(asked.anchor)];
    bool fits = grouping.group_of[at(asked.result)] == call;
    for (const int sum : asked.sums) fits = fits && grouping.group_of[at(sum)] == call;
    if (asked.mask >= 0) {
      const int home = grouping.group_of[at(asked.mask)];
      fits = fits && home != call && can_be_bits(graph, target, grouping, asked.mask, home, {call});
    }
    if (fits) fit.push_back(asked);
  }
  return fit;
}

}  // namespace fusejit::scheduler
