#include "scheduler/fuse/copies.h"

#include <algorithm>
#include <map>
#include <span>
#include <utility>

#include "ir/base/at.h"
#include "scheduler/choose/choose.h"
#include "scheduler/fuse/analysis.h"
#include "scheduler/fuse/gradients.h"
#include "scheduler/library.h"
#include "scheduler/names/steps.h"

namespace fusejit::scheduler {
namespace {

class Joiner {
 public:
  Joiner(const ir::Graph& graph, const Target& target, bool joins_gradients, const std::vector<bool>& alone,
         GroupLinks& links, Grouping& grouping)
      : graph_(graph),
        target_(target),
        joins_gradients_(joins_gradients),
        alone_(alone),
        links_(links),
        grouping_(grouping),
        dependencies_(links) {}

  void run() {
    find_readers();
    for (int g = 0; g < static_cast<int>(grouping_.groups.size()); ++g) {
      const int home = grouping_.groups[at(g)].anchor < 0 ? -1 : home_of_operand(g);
      if (home >= 0) join(g, home);
    }
    tidy_refusals();
  }

 private:
  void find_readers() {
    readers_.resize(at(graph_.value_count()));
    for (int v = 0; v < graph_.value_count(); ++v) {
      if (grouping_.group_of[at(v)] < 0) continue;
      for (const Access& access : grouping_.accesses[at(v)]) readers_[at(access.node)].push_back(v);
    }
    for (const ir::Value& result : graph_.results()) readers_[at(graph_.index_of(result.get()))].push_back(-1);
  }
  // Another group reads the operand, or it is a result.
  bool is_kept_for_others(int operand, int g, int home) const {
    const std::vector<int>& readers = readers_[at(operand)];
    return std::any_of(readers.begin(), readers.end(), [&](int v) {
      return v < 0 || (grouping_.group_of[at(v)] != g && grouping_.group_of[at(v)] != home);
    });
  }

  // The group of a gradient by the input that goes beside the weights', with which it reads more than this operand.
  bool is_beside_other_gradient(int g, int operand) const {
    const int anchor = grouping_.groups[at(g)].anchor;
    if (!joins_gradients_ || graph_.value(anchor)->op != ir::Op::conv2d_input_grad) return false;
    const std::vector<int>& readers = readers_[at(operand)];
    return std::any_of(readers.begin(), readers.end(), [&](int v) {
      const int other = v < 0 ? -1 : grouping_.group_of[at(v)];
      return gradients_meet(graph_, target_, anchor, v) && gradients_share_much(graph_, target_, grouping_, g, other) &&
             bytes_both_read(graph_, grouping_, g, other) > memory_bytes(graph_, grouping_, operand);
    });
  }

  bool is_alone(int node) const { return !alone_.empty() && alone_[at(node)]; }

  // The group that computes the anchor's first operand, if the anchor's can do it; else -1.
  int home_of_operand(int g) {
    const Group& group = grouping_.groups[at(g)];
    const std::span<const int> operands = graph_.operands(group.anchor);
    const int operand = operands[0], home = grouping_.group_of[at(operand)];
    if (home < 0 || is_alone(group.anchor) || runs_in_library(graph_, target_, group.anchor)) return -1;
    const Group& chain = grouping_.groups[at(home)];
    const bool same_pass = std::all_of(chain.stores.begin(), chain.stores.end(), [&](int v) {
      return graph_.value(v)->region == graph_.value(group.anchor)->region;  // one computed again waits (fuse/order.h)
    });
    if (!same_pass || group.length + chain.length > kMostLength || !is_chain(chain)) return -1;
    if (!is_kept_for_others(operand, g, home) || is_beside_other_gradient(g, operand)) return -1;
    if (std::count(operands.begin(), operands.end(), operand) != 1 || reads_else(g, home, operand)) return -1;
    std::vector<int> others = links_.producers[at(g)];
    std::erase(others, home);
    if (dependencies_.any_needs(others, home)) return -1;
    const bool bits = std::any_of(chain.stores.begin(), chain.stores.end(),
                                  [&](int v) { return memory_dtype(graph_, grouping_, v) == DType::b1; });
    return stores_in_copy(*graph_.value(group.anchor), target_, bits) ? home : -1;
  }

  // Each element of what it stores is computed from others at the same place, and from vectors and numbers.
  bool is_chain(const Group& chain) const {
    if (chain.anchor >= 0 || !chain.reductions.empty() || !chain.finals.empty()) return false;
    const auto has_home = [&](int v) { return grouping_.homes[at(v)].root >= 0; };
    if (std::any_of(chain.stores.begin(), chain.stores.end(), has_home)) return false;  // others read the whole
    const std::vector<int> nodes = computed_nodes(graph_, grouping_.stored, chain);
    return std::all_of(nodes.begin(), nodes.end(), [&](int v) {
      const ir::Family family = ir::op_def(graph_.value(v)->op).family;
      const bool small = 2 * graph_.value(v).type().elements() <= chain.domain.elements();
      return !is_alone(v) && (family == ir::Family::elementwise || (family == ir::Family::view && small));
    });
  }

  // Something else of the group than the anchor reads what `home` stores, or the anchor another value of it.
  bool reads_else(int g, int home, int operand) const {
    const Group& group = grouping_.groups[at(g)];
    for (const auto* list : {&group.stores, &group.reductions, &group.finals}) {
      for (const int node : *list) {
        for (const Access& access : grouping_.accesses[at(node)]) {
          const bool is_operand = node == group.anchor && access.node == operand;
          if (!is_operand && grouping_.group_of[at(access.node)] == home) return true;
        }
      }
    }
    return false;
  }

  void join(int g, int home) {
    Group& group = grouping_.groups[at(g)];
    const int operand = graph_.operands(group.anchor)[0];
    std::vector<int> on_the_way;  // to the others, and read by nobody else
    for (const int node : grouping_.groups[at(home)].stores)
      (is_kept_for_others(node, g, home) ? group.copies : on_the_way).push_back(node);
    for (const int node : on_the_way) {
      grouping_.stored[at(node)] = false, grouping_.group_of[at(node)] = -1;
      part_of_[node] = operand;
    }
    for (const int node : group.copies) {
      grouping_.group_of[at(node)] = g;
      std::vector<Access>& accesses = grouping_.accesses[at(node)];
      accesses = accesses_of(graph_, grouping_.stored, node, domain_of(*graph_.value(node)));
      for (Access& access : accesses) access.whole = true;  // not at the point of the anchor's domain
    }
    group.length += grouping_.groups[at(home)].length;
    grouping_.groups[at(home)] = {};
    links_.merge(g, home);
  }

  // What was said of a value that is now computed on the way to a join is said of the join; and that an anchor does not
  // compute its operand is true no more.
  void tidy_refusals() {
    for (Refused& refused : grouping_.refusals) {
      const auto part = part_of_.find(refused.consumer);
      if (part != part_of_.end())
        refused.consumer = part->second, refused.refusal.consumer = label(graph_, part->second);
    }
    std::erase_if(grouping_.refusals, [&](const Refused& refused) {
      const int g = grouping_.group_of[at(refused.consumer)];
      return g >= 0 && grouping_.groups[at(g)].anchor == refused.consumer &&
             grouping_.group_of[at(refused.producer)] == g;
    });
  }

  const ir::Graph& graph_;
  const Target& target_;
  const bool joins_gradients_;
  const std::vector<bool>& alone_;
  GroupLinks& links_;
  Grouping& grouping_;
  DependencyWalk dependencies_;
  std::vector<std::vector<int>> readers_;  // by node: stored values that are computed from it, -1: a result
  std::map<int, int> part_of_;             // what is computed on the way to a join: the join
};

}  // namespace

void store_in_copies(const ir::Graph& graph, const Target& target, bool joins_gradients, const std::vector<bool>& alone,
                     GroupLinks& links, Grouping& grouping) {
  if (target.isa != Isa::cuda) Joiner(graph, target, joins_gradients, alone, links, grouping).run();
}

}  // namespace fusejit::scheduler
