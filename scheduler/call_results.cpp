#include "scheduler/call_results.h"

#include <algorithm>
#include <set>

#include "ir/base/at.h"
#include "ir/passes/passes.h"
#include "scheduler/fuse/analysis.h"
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
        users_(users_of_nodes(graph)) {}

  // Masks are met before what they are applied to, and what is added before gradients that stay as they are.
  std::vector<CallResult> run() {
    const bool compiled = target_.cudnn == CudnnMode::compiled;
    for (int v = graph_.value_count() - 1; v >= 0; --v) {
      const ir::Op op = graph_.value(v)->op;
      if (is_alone(v) || taken_.contains(v)) continue;
      if (op == ir::Op::where && compiled) find_masked(v);
      if (op == ir::Op::add && compiled) find(v, -1, {v});
      const bool is_summed = op == ir::Op::conv2d ? target_.fast_norm : op == ir::Op::conv2d_input_grad && compiled;
      if (is_summed && runs_in_library(graph_, target_, v)) find_sums(v);
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
    const bool to_be_bits = rules_.has(Rule::masks) && users_[at(mask)].size() == 1 && !is_result(graph_, mask) &&
                            ir::op_def(condition.op).family == ir::Family::elementwise;
    if (to_be_bits) find(v, mask, std::move(inside));
  }

  // `inside`: the result and what is computed on the way from the gradient to it. Where two gradients are added, the
  // one whose call makes most sums.
  void find(int result, int mask, std::set<int> inside) {
    std::set<int> anchors;
    for (const int v : inside)
      for (const int operand : graph_.operands(v))
        if (is_call(operand)) anchors.insert(operand);
    std::erase_if(anchors, [&](int anchor) { return !supports(anchor, inside, {result}); });
    if (anchors.empty()) return;
    taken_.insert(inside.begin(), inside.end());
    for (const Sums& sums : sums_of(result)) {
      for (const int anchor : anchors)
        if (supports(anchor, inside, {result}, &sums)) return keep({anchor, result, mask, sums.nodes});
    }
    keep({*anchors.begin(), result, mask});
  }
  // Sums of what the anchor itself computes.
  void find_sums(int v) {
    for (const Sums& sums : sums_of(v))
      if (supports(v, {}, {v}, &sums)) return keep({v, v, -1, sums.nodes});
  }
  void keep(CallResult found) {
    taken_.insert(found.anchor);
    found_.push_back(std::move(found));
  }

  // Sums that a call may make together, in the graph's order, and what is computed for them on the way.
  struct Sums {
    std::vector<int> nodes;
    std::set<int> inside;
  };
  // Of a value's elements and of their products with something: pairs of both first, then the plain ones.
  std::vector<Sums> sums_of(int v) const {
    std::vector<Sums> plain, products, all;
    std::vector<int> values{v};
    for (const int user : users_[at(v)])
      if (graph_.value(user)->op == ir::Op::cast) values.push_back(user);
    for (const int value : values) {
      std::set<int> before;
      if (value != v) before.insert(value);
      for (const int user : users_[at(value)]) {
        const ir::Op op = graph_.value(user)->op;
        if (op == ir::Op::sum && !is_alone(user)) plain.push_back({{user}, before});
        if (op != ir::Op::mul) continue;
        std::set<int> inside = before;
        inside.insert(user);
        for (const int operand : graph_.operands(user)) add_factor(operand, v, inside);
        for (const int sum : users_[at(user)])
          if (graph_.value(sum)->op == ir::Op::sum && !is_alone(sum)) products.push_back({{sum}, inside});
      }
    }
    for (const Sums& one : plain)
      for (const Sums& other : products) {
        Sums both = one;
        both.nodes.push_back(other.nodes[0]);
        std::sort(both.nodes.begin(), both.nodes.end());
        both.inside.insert(other.inside.begin(), other.inside.end());
        all.push_back(std::move(both));
      }
    all.insert(all.end(), plain.begin(), plain.end());
    return all;
  }
  // What a factor is computed from, element by element.
  void add_factor(int node, int until, std::set<int>& inside) const {
    constexpr std::size_t kMost = 16;
    if (node < 0 || node == until || inside.size() > kMost) return;
    const ir::Family family = ir::op_def(graph_.value(node)->op).family;
    const bool computed = family == ir::Family::elementwise || family == ir::Family::view;
    if (!computed || !inside.insert(node).second) return;
    for (const int operand : graph_.operands(node)) add_factor(operand, until, inside);
  }

  bool is_call(int v) const {
    return v >= 0 && graph_.value(v)->op == ir::Op::conv2d_input_grad && users_[at(v)].size() == 1 && !is_alone(v) &&
           !taken_.contains(v) && runs_in_library(graph_, target_, v);
  }
  bool supports(int anchor, std::set<int> inside, std::vector<int> results, const Sums* sums = nullptr) const {
    inside.insert(anchor);
    if (sums) {
      inside.insert(sums->inside.begin(), sums->inside.end()), inside.insert(sums->nodes.begin(), sums->nodes.end());
      results.insert(results.end(), sums->nodes.begin(), sums->nodes.end());
    }
    return supports_(capture_call(graph_, inside, results).graph, target_).ok;
  }
  bool is_alone(int v) const { return !alone_.empty() && alone_[at(v)]; }

  const ir::Graph& graph_;
  const Target& target_;
  const LibrarySupports& supports_;
  const std::vector<bool>& alone_;
  const Rules& rules_;
  const std::vector<std::vector<int>> users_;  // by node
  std::set<int> taken_;                        // what is computed on the way to a result that was found
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
  for (CallResult asked : grouping.call_results) {
    const int call = grouping.group_of[at(asked.anchor)];
    bool fits = grouping.group_of[at(asked.result)] == call;
    if (asked.mask >= 0) {
      const int home = grouping.group_of[at(asked.mask)];
      fits = fits && home != call && can_be_bits(graph, target, grouping, asked.mask, home, {call});
    }
    const auto is_apart = [&](int sum) { return grouping.group_of[at(sum)] != call; };
    if (std::any_of(asked.sums.begin(), asked.sums.end(), is_apart)) asked.sums.clear();
    if (fits && (asked.result != asked.anchor || !asked.sums.empty())) fit.push_back(std::move(asked));
  }
  return fit;
}

}  // namespace fusejit::scheduler
