#include "scheduler/fuse/order.h"

#include <algorithm>
#include <map>
#include <set>

#include "ir/base/at.h"
#include "ir/base/check.h"
#include "scheduler/fuse/analysis.h"
#include "scheduler/fuse/gradients.h"

namespace fusejit::scheduler {
namespace {

// Groups on the longest way to each.
std::vector<int> depths(const GroupLinks& links) {
  const auto n = links.first_node.size();
  std::vector<int> depth(n), stack;
  for (std::size_t root = 0; root < n; ++root) {
    stack.push_back(static_cast<int>(root));
    while (!stack.empty()) {
      const int g = stack.back();
      int deepest = 0, missing = -1;
      for (const int producer : links.producers[at(g)]) {
        if (depth[at(producer)] == 0) missing = producer;
        deepest = std::max(deepest, depth[at(producer)]);
      }
      FJ_ASSERT(stack.size() <= n, "group {} needs itself", g);
      if (missing >= 0) {
        stack.push_back(missing);
      } else {
        depth[at(g)] = deepest + 1;
        stack.pop_back();
      }
    }
  }
  return depth;
}

// Depth first from every group in node order: producers right before their first user, recomputations last of them, and
// of those the deepest first: a part of the forward pass waits for the gradient of its result, which has all of the
// backward pass so far behind it, before it is computed again.
std::vector<int> by_nodes(const ir::Graph& graph, const GroupLinks& links) {
  const auto n = static_cast<int>(links.first_node.size());
  const auto lazy = [&](int g) { return graph.value(links.first_node[at(g)])->region > 0; };
  const std::vector<int> depth = depths(links);
  std::vector<int> roots(at(n)), sequence, stack;
  for (int g = 0; g < n; ++g) roots[at(g)] = g;
  std::sort(roots.begin(), roots.end(), [&](int a, int b) { return links.last_node[at(a)] < links.last_node[at(b)]; });
  std::stable_partition(roots.begin(), roots.end(), [&](int g) { return !lazy(g); });
  std::vector<bool> is_read(at(n));  // a recomputation comes with its first user
  for (const std::vector<int>& producers : links.producers)
    for (const int producer : producers) is_read[at(producer)] = true;
  std::erase_if(roots, [&](int g) { return lazy(g) && is_read[at(g)]; });
  const auto before = [&](int a, int b) {
    return lazy(a) != lazy(b) ? lazy(b) : lazy(a) && depth[at(a)] > depth[at(b)];
  };
  std::vector<bool> done(at(n));
  for (const int root : roots) {
    stack.push_back(root);
    while (!stack.empty()) {
      const int g = stack.back();
      if (done[at(g)]) {
        stack.pop_back();
        continue;
      }
      int missing = -1;
      for (const int producer : links.producers[at(g)])
        if (!done[at(producer)] && (missing < 0 || before(producer, missing))) missing = producer;
      if (missing >= 0) {
        FJ_ASSERT(stack.size() < at(n), "group {} needs itself", missing);
        stack.push_back(missing);
        continue;
      }
      done[at(g)] = true;
      sequence.push_back(g);
      stack.pop_back();
    }
  }
  return sequence;
}

// What frees memory is taken forward.
class Freeing {
 public:
  Freeing(const ir::Graph& graph, const GroupLinks& links, const Grouping& grouping, const std::vector<int>& base)
      : graph_(graph),
        links_(links),
        grouping_(grouping),
        reads_(base.size()),
        users_(base.size()),
        missing_(base.size()),
        done_(base.size()),
        readers_(at(graph.value_count())),
        left_(readers_.size()),
        next_reader_(readers_.size()),
        is_result_(readers_.size()) {
    for (const ir::Value& result : graph.results()) is_result_[at(graph.index_of(result.get()))] = true;
    for (const int g : base) {
      for (const int producer : links.producers[at(g)]) users_[at(producer)].push_back(g), ++missing_[at(g)];
    }
    for (int v = 0; v < graph.value_count(); ++v) {
      const int group = grouping.group_of[at(v)];
      if (group < 0) continue;
      for (const Access& access : grouping.accesses[at(v)])
        if (grouping.group_of[at(access.node)] != group) reads_[at(group)].insert(access.node);
    }
    for (const int g : base) {
      for (const int v : reads_[at(g)]) readers_[at(v)].push_back(g), ++left_[at(v)];
      const int anchor = grouping.groups[at(g)].anchor;
      if (anchor >= 0 && graph.value(anchor)->op == ir::Op::conv2d_weight_grad)
        weight_gradients_.emplace(graph.operands(anchor)[1], g);
    }
  }

  std::vector<int> run(const std::vector<int>& base) {
    for (const int g : base) {
      if (done_[at(g)]) continue;
      std::vector<int> next{g};
      for (std::size_t i = 0; i < next.size(); ++i) {  // grows
        if (done_[at(next[i])]) continue;
        emit(next[i]);
        add_freeing(next[i], next);
        const int other = other_gradient(next[i]);
        if (other >= 0 && !done_[at(other)] && may_come(other))
          next.insert(next.begin() + static_cast<std::ptrdiff_t>(i) + 1, other);
      }
    }
    return std::move(sequence_);
  }

 private:
  void emit(int g) {
    done_[at(g)] = true;
    sequence_.push_back(g);
    for (const int v : reads_[at(g)]) {
      --left_[at(v)];
      std::size_t& next = next_reader_[at(v)];
      while (next < readers_[at(v)].size() && done_[at(readers_[at(v)][next])]) ++next;
    }
    for (const int user : users_[at(g)]) --missing_[at(user)];
  }

  // Those that may have come to free something by what `g` did: they need it, or are the last to read what it read.
  void add_freeing(int g, std::vector<int>& next) const {
    const auto consider = [&](int other) {
      if (!done_[at(other)] && is_ready(other) && frees(other)) next.push_back(other);
    };
    for (const int v : reads_[at(g)])
      if (left_[at(v)] == 1 && is_temporary(v)) consider(readers_[at(v)][next_reader_[at(v)]]);
    for (const int user : users_[at(g)]) consider(user);
  }

  // The weights' gradient behind the input's that goes over the same rows: the two may become one kernel.
  int other_gradient(int g) const {
    const int by_input = grouping_.groups[at(g)].anchor;
    if (by_input < 0 || graph_.value(by_input)->op != ir::Op::conv2d_input_grad) return -1;
    const auto found = weight_gradients_.find(graph_.operands(by_input)[0]);
    if (found == weight_gradients_.end()) return -1;
    const int by_weights = grouping_.groups[at(found->second)].anchor;
    return go_over_same_rows(graph_, by_input, by_weights) ? found->second : -1;
  }

  bool is_parameter(int v) const { return v < static_cast<int>(graph_.parameters().size()); }
  bool is_temporary(int v) const { return grouping_.group_of[at(v)] >= 0 && !is_result_[at(v)]; }
  std::int64_t bytes_of(int v) const { return memory_bytes(graph_, grouping_, v); }

  // All that it needs is there, and whoever was to read a parameter before that it may overwrite has done so.
  bool is_ready(int g) const {
    if (missing_[at(g)] > 0) return false;
    for (const int v : reads_[at(g)]) {
      const bool may_be_overwritten = is_parameter(v) && graph_.value(v).type().elements() > 1;
      if (may_be_overwritten && readers_[at(v)][next_reader_[at(v)]] != g) return false;
    }
    return true;
  }

  // The same, where only what it writes over parameters counts: those that it reads alone stay as they are.
  bool may_come(int g) const {
    const std::vector<int>& stores = grouping_.groups[at(g)].stores;
    return missing_[at(g)] == 0 && std::none_of(reads_[at(g)].begin(), reads_[at(g)].end(), [&](int v) {
             return is_parameter(v) && readers_[at(v)][next_reader_[at(v)]] != g &&
                    std::any_of(stores.begin(), stores.end(), [&](int stored) {
                      return is_result_[at(stored)] && graph_.value(stored).type() == graph_.value(v).type();
                    });
           });
  }

  // More than nothing, and at least what it takes, or more, if it can wait as what is computed again can: nothing for
  // what only it reads itself, nor for a result that may be written over a parameter.
  bool frees(int g) const {
    std::int64_t freed = 0, taken = 0;
    for (const int v : reads_[at(g)])
      if (is_temporary(v) && left_[at(v)] == 1) freed += bytes_of(v);
    for (const auto* list : {&grouping_.groups[at(g)].stores, &grouping_.groups[at(g)].copies})
      for (const int v : *list)
        if (is_result_[at(v)] ? !replaces_parameter(g, v) : !readers_[at(v)].empty()) taken += bytes_of(v);
    const bool can_wait = graph_.value(links_.first_node[at(g)])->region > 0;
    return freed > 0 && freed >= taken + (can_wait ? 1 : 0);
  }
  bool replaces_parameter(int g, int v) const {
    return std::any_of(reads_[at(g)].begin(), reads_[at(g)].end(), [&](int read) {
      return is_parameter(read) && graph_.value(read).type() == graph_.value(v).type();
    });
  }

  const ir::Graph& graph_;
  const GroupLinks& links_;
  const Grouping& grouping_;
  std::vector<std::set<int>> reads_;     // by group: values of other groups, and parameters
  std::vector<std::vector<int>> users_;  // by group: groups
  std::vector<int> missing_;             // by group: producers to come
  std::vector<bool> done_;
  std::vector<std::vector<int>> readers_;  // by node: groups, in the order without this
  std::vector<int> left_;                  // by node: readers to come
  std::vector<std::size_t> next_reader_;   // by node: the first of those
  std::vector<bool> is_result_;
  std::map<int, int> weight_gradients_;  // groups, by the gradient that they are given
  std::vector<int> sequence_;
};

}  // namespace

void order_groups(const ir::Graph& graph, const GroupLinks& links, Grouping& grouping) {
  const std::vector<int> base = by_nodes(graph, links), sequence = Freeing(graph, links, grouping, base).run(base);
  std::vector<int> place(sequence.size());
  std::vector<Group> ordered;
  for (const int g : sequence) {
    place[at(g)] = static_cast<int>(ordered.size());
    ordered.push_back(std::move(grouping.groups[at(g)]));
  }
  grouping.groups = std::move(ordered);
  for (int& g : grouping.group_of) {
    if (g >= 0) g = place[at(g)];
  }
}

}  // namespace fusejit::scheduler
