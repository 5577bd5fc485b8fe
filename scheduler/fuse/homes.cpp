#include "scheduler/fuse/homes.h"

#include <algorithm>
#include <map>
#include <set>

#include "ir/base/at.h"
#include "scheduler/fuse/analysis.h"

namespace fusejit::scheduler {
namespace {

class Finder {
 public:
  Finder(const ir::Graph& graph, const std::vector<bool>& alone, const Grouping& grouping,
         const std::vector<bool>& refused)
      : graph_(graph),
        alone_(alone),
        stored_(grouping.stored),
        refused_(refused),
        homes_(at(graph.value_count())),
        users_(users_of_nodes(graph)),
        is_result_(homes_.size()) {
    for (const ir::Value& result : graph.results()) is_result_[at(graph.index_of(result.get()))] = true;
  }

  std::vector<Home> run() {
    for (int v = 0; v < graph_.value_count(); ++v)
      if (is_in_place(v)) place(v);
    for (int v = graph_.value_count() - 1; v >= 0; --v) {  // what holds a concatenation comes behind it
      Home& home = homes_[at(v)];
      if (home.root < 0 || home.root == v) continue;
      const Home& around = homes_[at(home.root)];
      home.root = around.root, home.channel += around.channel;
    }
    return std::move(homes_);
  }

 private:
  bool is_in_place(int v) const {
    const ir::Node& node = *graph_.value(v);
    if (node.op != ir::Op::concat || node.type.layout != Layout::nhwc || node.attrs.integer("dim") != 1) return false;
    if (is_result_[at(v)] || is_alone(v) || (!refused_.empty() && refused_[at(v)])) return false;
    const std::vector<int> parts = parts_of(v);
    if (std::set<int>(parts.begin(), parts.end()).size() != parts.size()) return false;
    return std::all_of(parts.begin(), parts.end(), [&](int part) { return part >= 0 && is_part(part, v); });
  }

  // A concatenation that begins with all parts of another takes that for one: lists grow from layer to layer.
  std::vector<int> parts_of(int v) const {
    const std::span<const int> all = graph_.operands(v);
    for (std::size_t n = all.size() - 1; n >= 2; --n) {
      const auto begin = wholes_.find({all.begin(), all.begin() + static_cast<std::ptrdiff_t>(n)});
      if (begin == wholes_.end()) continue;
      std::vector<int> parts{begin->second};
      parts.insert(parts.end(), all.begin() + static_cast<std::ptrdiff_t>(n), all.end());
      return parts;
    }
    return {all.begin(), all.end()};
  }

  bool is_part(int v, int whole) const {
    const ir::Node& node = *graph_.value(v);
    if (node.type.layout != Layout::nhwc || node.type.dtype != graph_.value(whole).type().dtype || is_result_[at(v)] ||
        is_alone(v))
      return false;
    if (homes_[at(v)].root >= 0) return homes_[at(v)].root == v;  // in place, and part of nothing else yet
    const ir::Family family = ir::op_def(node.op).family;
    if (family != ir::Family::elementwise && family != ir::Family::anchor) return false;
    return stored_[at(v)] || stored_[at(whole)] || ends_an_anchor(v);
  }

  // A convolution's or product's kernel stores it in place of its result: nobody else reads what lies between, and what
  // else is read is in memory.
  bool ends_an_anchor(int v) const {
    for (;;) {
      const ir::Node& node = *graph_.value(v);
      if (users_[at(v)].size() != 1 || is_result_[at(v)]) return false;
      if (ir::op_def(node.op).is_contraction()) return true;
      if (ir::op_def(node.op).family != ir::Family::elementwise) return false;
      int next = -1;
      for (const int operand : graph_.operands(v)) {
        if (operand < 0 || graph_.value(operand).type().shape != node.type.shape) continue;
        const bool computed = ir::op_def(graph_.value(operand)->op).is_contraction() || !stored_[at(operand)];
        if (computed && next >= 0 && next != operand) return false;
        if (computed) next = operand;
      }
      if (next < 0) return false;
      v = next;
    }
  }

  void place(int v) {
    std::int64_t channel = 0;
    for (const int part : parts_of(v)) {
      homes_[at(part)].root = v, homes_[at(part)].channel = channel;
      channel += graph_.value(part).type().shape[1];
    }
    homes_[at(v)] = {v, 0, true};
    const std::span<const int> all = graph_.operands(v);
    wholes_.emplace(std::vector<int>(all.begin(), all.end()), v);
  }

  bool is_alone(int v) const { return !alone_.empty() && alone_[at(v)]; }

  const ir::Graph& graph_;
  const std::vector<bool>&alone_, &stored_, &refused_;
  std::vector<Home> homes_;                 // until the end: in the concatenation next around it
  std::map<std::vector<int>, int> wholes_;  // in place, by their operands
  std::vector<std::vector<int>> users_;
  std::vector<bool> is_result_;
};

// The first concatenation that a part stands in.
std::map<int, int> next_around(const ir::Graph& graph, const Grouping& grouping) {
  std::map<int, int> around;
  for (int v = 0; v < graph.value_count(); ++v) {
    if (!grouping.is_in_place(v)) continue;
    for (const int part : graph.operands(v)) around.emplace(part, v);
  }
  return around;
}

// An anchor's kernel packs weights that are in the memory of a concatenation.
bool packs_from_homes(const ir::Graph& graph, const Grouping& grouping, int anchor) {
  if (anchor < 0 || !ir::op_def(graph.value(anchor)->op).packs_second) return false;
  std::vector<int> open{graph.operands(anchor)[1]};
  std::set<int> seen(open.begin(), open.end());
  while (!open.empty()) {
    const int v = open.back();
    open.pop_back();
    if (grouping.homes[at(v)].root >= 0) return true;
    if (grouping.stored[at(v)]) continue;
    for (const int operand : graph.operands(v))
      if (operand >= 0 && seen.insert(operand).second) open.push_back(operand);
  }
  return false;
}

}  // namespace

std::vector<Home> find_homes(const ir::Graph& graph, const std::vector<bool>& alone, const Grouping& grouping,
                             const std::vector<bool>& refused) {
  return Finder(graph, alone, grouping, refused).run();
}

std::vector<int> unfit_homes(const ir::Graph& graph, const Grouping& grouping) {
  std::set<int> unfit;
  const std::map<int, int> around = next_around(graph, grouping);
  for (const auto& [part, whole] : around) {
    if (grouping.is_in_place(part)) continue;
    const int g = grouping.group_of[at(part)];
    const auto stores = [&](const std::vector<int>& list) {
      return std::find(list.begin(), list.end(), part) != list.end();
    };
    const bool fits = g >= 0 && grouping.stored[at(part)] &&
                      (stores(grouping.groups[at(g)].copies) ||
                       (stores(grouping.groups[at(g)].stores) &&
                        grouping.groups[at(g)].domain.shape == graph.value(part).type().shape));
    if (!fits) unfit.insert(whole);
  }
  for (const Group& group : grouping.groups) {
    if (packs_from_homes(graph, grouping, group.anchor)) {
      for (int v = 0; v < graph.value_count(); ++v)
        if (grouping.is_in_place(v)) unfit.insert(v);
    }
    if (group.anchor < 0 || bits(graph.value(group.anchor).type().dtype) != 16) continue;
    // Pairs of 16 bits are read as words: whole lines of them from the first channel on.
    for (const Access& access : grouping.accesses[at(group.anchor)]) {
      const Home& home = grouping.homes[at(access.node)];
      const bool in_words =
          home.root < 0 || (home.channel % 32 == 0 && graph.value(home.root).type().shape[1] % 2 == 0);
      if (!in_words) unfit.insert(around.contains(access.node) ? around.at(access.node) : access.node);
    }
  }
  return {unfit.begin(), unfit.end()};
}

std::vector<int> stored_parts(const ir::Graph& graph, const Grouping& grouping, int node) {
  std::vector<int> parts, open{node};
  while (!open.empty()) {
    const int v = open.back();
    open.pop_back();
    if (!grouping.is_in_place(v)) {
      parts.push_back(v);
      continue;
    }
    const std::span<const int> of = graph.operands(v);
    open.insert(open.end(), of.begin(), of.end());
  }
  return parts;
}

}  // namespace fusejit::scheduler
