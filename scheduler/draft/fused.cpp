#include "scheduler/draft/fused.h"

#include <algorithm>
#include <deque>
#include <functional>
#include <iterator>
#include <map>
#include <numeric>
#include <set>

#include "ir/base/at.h"
#include "ir/base/check.h"
#include "ir/interp.h"
#include "ir/strict.h"
#include "scheduler/choose/choose.h"
#include "scheduler/draft/both_gradients.h"
#include "scheduler/fuse/analysis.h"
#include "scheduler/fuse/fuse.h"
#include "scheduler/fuse/gradients.h"
#include "scheduler/fuse/homes.h"
#include "scheduler/lower/lower.h"
#include "scheduler/names/steps.h"

namespace fusejit::scheduler {
namespace {

// One line in what a plan's text may quote.
std::string printable(std::string_view text) {
  std::string line(text.substr(0, text.find('\n')));
  for (char& c : line) c = c == '"' ? '\'' : c >= ' ' && c <= '~' ? c : '?';
  return line;
}

// A group whose kernel cannot be made.
struct Failed {
  Fallback said;
  std::vector<int> nodes;  // computed_nodes()
  bool split = false;      // some of them were not alone
};

class FusedDraft {
 public:
  FusedDraft(const ir::Graph& graph, const PlanOptions& options, bool in_place, const std::vector<bool>& alone,
             StepMaker& steps)
      : graph_(graph),
        options_(options),
        in_place_(in_place),
        alone_(alone),
        steps_(steps),
        grouping_(make_groups(graph, options.target, options.supports, alone, options.rules,
                              options.concat_in_place && options.target.isa != Isa::cuda)) {}

  Draft run() {
    drop_unread();
    find_last_readers();
    declare_values();
    for (Refused& refused : grouping_.refusals) draft_.refusals.push_back(std::move(refused.refusal));
    for (int g = 0; g < static_cast<int>(grouping_.groups.size()); ++g) lower_group(g);
    for (const ir::Value& result : graph_.results())
      draft_.results.push_back(value_of_[at(graph_.index_of(result.get()))]);
    return std::move(draft_);
  }
  // If there are any, the draft is not whole.
  const std::vector<Failed>& failures() const { return failures_; }

 private:
  // What only its own group uses never reaches memory, and a group whose values nobody reads is no kernel: what lies
  // wholly outside of what a view takes is in the graph all the same. Readers come after what they read.
  void drop_unread() {
    readers_.resize(at(graph_.value_count()));
    is_result_.resize(readers_.size());
    for (const ir::Value& result : graph_.results()) is_result_[at(graph_.index_of(result.get()))] = true;
    std::vector<bool> needed = is_result_;
    for (int g = static_cast<int>(grouping_.groups.size()) - 1; g >= 0; --g) {
      Group& group = grouping_.groups[at(g)];
      if (!is_needed(group, needed)) {
        drop(group);
        continue;
      }
      // A call writes what it sums, read or not.
      const bool is_call = group.anchor >= 0 && runs_in_library(graph_, options_.target, group.anchor);
      if (is_call && !group.reductions.empty()) needed[at(group.stores.back())] = true;
      for (const auto* list : {&group.stores, &group.reductions, &group.finals, &group.copies}) {
        for (const int node : *list) {
          for (const Access& access : grouping_.accesses[at(node)]) {
            if (grouping_.group_of[at(access.node)] == g) continue;
            needed[at(access.node)] = true;
            for (const int part : stored_parts(graph_, grouping_, access.node)) needed[at(part)] = true;
            readers_[at(access.node)].push_back({g, &access});
          }
        }
      }
    }
    for (int g = 0; g < static_cast<int>(grouping_.groups.size()); ++g) {
      Group& group = grouping_.groups[at(g)];
      for (const int node : group.reductions) {
        if (shares_shift(group, node)) add_shift(g, node);
      }
      const auto unread = [&](int node) { return !needed[at(node)]; };
      std::erase_if(group.copies, unread);
      // An anchor that runs for what its copy stores alone writes what nobody reads.
      const bool for_copies = !group.copies.empty() && group.reductions.empty() && group.finals.empty();
      if (for_copies && std::all_of(group.stores.begin(), group.stores.end(), unread)) continue;
      std::copy_if(group.stores.begin(), group.stores.end(), std::back_inserter(group.inner), unread);
      std::erase_if(group.stores, unread);
    }
  }
  static bool is_needed(const Group& group, const std::vector<bool>& needed) {
    const auto any = [&](const std::vector<int>& list) {
      return std::any_of(list.begin(), list.end(), [&](int node) { return needed[at(node)]; });
    };
    return any(group.stores) || any(group.reductions) || any(group.finals) || any(group.copies);
  }
  void drop(Group& group) {
    for (const auto* list : {&group.stores, &group.reductions, &group.finals, &group.copies})
      for (const int node : *list) grouping_.group_of[at(node)] = -1;
    group = {};
  }

  // The shift of a variance is the first of the elements that are summed (lower/accumulator.h). True if an element is
  // summed by other lanes or threads than the one that the first belongs to.
  bool shares_shift(const Group& group, int node) const {
    if (graph_.value(node)->op != ir::Op::var) return false;
    const int last = innermost_dim(group.domain);  // lanes run along it
    return (last >= 0 && group.reduced[at(last)]) || options_.target.isa == Isa::cuda;
  }
  // What the shift is computed from is read at that first element too.
  void add_shift(int g, int variance) {
    const Group& group = grouping_.groups[at(g)];
    const auto first = [&](const ir::IndexAtom& leaf) -> std::optional<ir::Index> {
      const int d = leaf.kind == ir::AtomKind::variable ? leaf.id - kPlaceholder : -1;
      return d >= 0 && group.reduced[at(d)] ? std::optional(ir::Index(0)) : std::nullopt;
    };
    std::vector<int> computed{variance};
    for (std::size_t i = 0; i < computed.size(); ++i) {
      for (const Access& access : grouping_.accesses[at(computed[i])]) {
        if (grouping_.group_of[at(access.node)] == g) {
          if (std::find(computed.begin(), computed.end(), access.node) == computed.end())
            computed.push_back(access.node);
          continue;
        }
        Access& at_first = at_shifts_.emplace_back(access);
        for (ir::Index& index : at_first.index) index = index.substitute(first);
        readers_[at(access.node)].push_back({g, &at_first});
      }
    }
  }

  void find_last_readers() {
    last_read_in_.resize(grouping_.groups.size());
    for (std::size_t v = 0; v < readers_.size(); ++v) {
      int last = -1;
      for (const auto& [group, access] : readers_[v]) last = std::max(last, group);
      if (last >= 0) last_read_in_[at(last)].push_back(static_cast<int>(v));
    }
  }

  void declare_values() {
    value_of_.assign(readers_.size(), -1);
    plan_owned_.resize(readers_.size());
    for (int v = 0; v < graph_.value_count(); ++v) {
      const ir::Node& node = *graph_.value(v);
      const bool parameter = node.op == ir::Op::parameter, constant = node.op == ir::Op::constant;
      const Home& home = grouping_.homes[at(v)];
      if (!parameter && !constant && grouping_.group_of[at(v)] < 0 && home.root < 0) continue;
      DraftValue value{parameter  ? DraftKind::parameter
                       : constant ? DraftKind::constant
                                  : DraftKind::temporary,
                       parameter ? v : -1,
                       memory_dtype(graph_, grouping_, v),
                       memory_bytes(graph_, grouping_, v),
                       label(graph_, v),
                       {}};
      if (constant) {
        ir::Array array(node.type);
        ir::op_def(node.op).evaluate({node, {}, array});
        value.data = std::move(array.bytes);
      }
      if (home.root >= 0) value.bytes = memory_bytes(graph_, grouping_, home.root);
      value_of_[at(v)] = static_cast<int>(draft_.values.size());
      plan_owned_[at(v)] = value.kind == DraftKind::temporary;
      draft_.values.push_back(std::move(value));
    }
    for (std::size_t v = 0; v < value_of_.size(); ++v) {
      const Home& home = grouping_.homes[v];
      if (home.root < 0 || home.root == static_cast<int>(v)) continue;
      DraftValue& value = draft_.values[at(value_of_[v])];
      value.inside = value_of_[at(home.root)], value.from = bytes(value.dtype, home.channel);
    }
  }

  // What this group reads for the last time; for a result, before all else what it comes from along first operands: w
  // of w - rate * g, m of 0.9 * m + g. A parameter is replaced in its own memory, then, and stays where it is.
  std::vector<int> last_read(int g, int node) const {
    constexpr int kFarthest = 8;
    std::vector<int> candidates = last_read_in_[at(g)];
    auto first = candidates.begin();
    const ir::Node* origin = graph_.value(node).get();
    for (int steps = is_result_[at(node)] ? 0 : kFarthest;
         steps < kFarthest && !origin->operands.empty() && origin->operands[0].value; ++steps) {
      origin = origin->operands[0].value.get();
      const auto found = std::find(first, candidates.end(), graph_.index_of(origin));
      if (found != candidates.end()) std::iter_swap(first++, found);
    }
    return candidates;
  }

  // A value that this group reads for the last time, element by element, and that `node` may overwrite.
  int overwritable(int g, int node, const std::map<int, int>& taken) const {
    if (grouping_.homes[at(node)].root >= 0) return -1;
    const Type& type = graph_.value(node).type();
    const Group& own = grouping_.groups[at(g)];
    if (seen_in(own, node, type) != type) return -1;  // it would be read at another index
    const bool turned = own.turned.contains(node);
    const bool is_result = is_result_[at(node)];
    for (const int candidate : last_read(g, node)) {
      const std::size_t v = at(candidate);
      if (value_of_[v] < 0 || grouping_.homes[v].root >= 0) continue;
      const bool donated = v < options_.donated.size() && options_.donated[v];
      const bool parameter = v < graph_.parameters().size();
      if (parameter ? !(donated && is_result) : is_result) continue;
      if (graph_.value(candidate)->op == ir::Op::constant || graph_.value(candidate).type() != type ||
          memory_dtype(graph_, grouping_, candidate) != memory_dtype(graph_, grouping_, node))
        continue;
      if (std::any_of(taken.begin(), taken.end(), [&](const auto& t) { return t.second == candidate; })) continue;
      if (is_result_[v]) continue;
      bool elementwise = true;
      for (const auto& [group, access] : readers_[v]) {
        if (group == g)
          elementwise &= turned ? !access->whole && access->index == in_memory(type, point_in(own, node, type))
                                : is_identity(*access, own.domain, type);
      }
      if (elementwise) return candidate;
    }
    return -1;
  }

  void lower_group(int g) {
    const Group& group = grouping_.groups[at(g)];
    if (group.stores.empty() && group.reductions.empty() && group.finals.empty()) return;  // dropped
    const bool library = group.anchor >= 0 && runs_in_library(graph_, options_.target, group.anchor);
    LowerContext context{graph_,
                         grouping_,
                         options_.target,
                         library,
                         graph_.value_count(),
                         {},
                         plan_owned_,
                         steps_.kernels(),
                         options_.reschedule,
                         options_.contractions,
                         are_gradients_together(g) || are_gradients_together(g - 1),
                         options_.rules.has(Rule::barrier) ? sums_before(group) : nullptr};
    if (in_place_ && !library) {  // a call reads its operands while it writes
      for (const int node : group.stores) {
        const int over = overwritable(g, node, context.in_place);
        if (over < 0) continue;
        context.in_place[node] = over;
      }
    }
    LoweredGroup lowered;
    try {
      lowered = lower(context, group);
      if (options_.inspect)
        for (const LoweredKernel& kernel : lowered.kernels) options_.inspect(*kernel.kernel);
    } catch (const Error& error) {
      if (options_.reschedule && dynamic_cast<const UserError*>(&error) != nullptr) throw;  // the schedule is theirs
      return failed(group, error);
    }
    std::vector<Overwritten> overwrites;
    for (const auto& [node, over] : context.in_place) {
      overwrites.push_back({value_of_[at(over)], label(graph_, node)});
      value_of_[at(node)] = value_of_[at(over)], plan_owned_[at(node)] = plan_owned_[at(over)];
    }
    for (const auto* list : {&group.stores, &group.copies}) {
      for (const int node : *list)
        if (grouping_.homes[at(node)].root >= 0) overwrites.push_back({value_of_[at(node)], label(graph_, node)});
    }
    const int first_extra = static_cast<int>(draft_.values.size());
    for (const ExtraValue& extra : lowered.extras) {
      draft_.values.push_back(
          {DraftKind::temporary, -1, extra.dtype, bytes(extra.dtype, elements_of(extra)), extra.label, {}});
    }
    const std::vector<int> nodes = computed_nodes(graph_, grouping_.stored, group);
    std::vector<std::string> ops;
    for (const auto* list : {&group.inner, &group.stores, &group.reductions, &group.finals, &group.copies}) {
      for (const int node : *list) ops.push_back(label(graph_, node));
    }
    refuse_packed(group, lowered);
    for (LoweredKernel& kernel : lowered.kernels) {
      std::vector<int> values;
      for (const int v : kernel.values) {
        values.push_back(v < graph_.value_count() ? value_of_[at(v)] : first_extra + v - graph_.value_count());
      }
      const bool last = &kernel == &lowered.kernels.back();
      draft_.steps.push_back(steps_.make(kernel.kernel, std::move(values),
                                         last ? ops : std::vector<std::string>{lowered.extras[0].label}));
      draft_.steps.back().nodes = last ? nodes : std::vector<int>{group.anchor};
    }
    draft_.steps.back().overwrites = std::move(overwrites);
    if (!group.reductions.empty() && group.anchor < 0) sums_[g] = lowered.schedules[0].schedule;
    draft_.steps.back().schedules = std::move(lowered.schedules);
    if (library) give_to_library(g, draft_.steps.back());
  }

  // A group and the one behind it.
  bool are_gradients_together(int g) const {
    if (g < 0 || g + 1 >= static_cast<int>(grouping_.groups.size())) return false;
    const int by_input = grouping_.groups[at(g)].anchor, by_weights = grouping_.groups[at(g) + 1].anchor;
    return joins_gradients(options_.rules, options_.target) &&
           gradients_meet(graph_, options_.target, by_input, by_weights) &&
           gradients_share_much(graph_, options_.target, grouping_, g, g + 1);
  }

  static bool goes_over(const Type& a, const Type& b) { return a.shape == b.shape && a.layout == b.layout; }
  // How sums over the same domain were added up that this group, which adds up none, needs; the last of them.
  const Schedule* sums_before(const Group& group) const {
    if (group.anchor >= 0 || !group.reductions.empty()) return nullptr;
    int last = -1;
    for (const int node : group.stores) {
      for (const Access& access : grouping_.accesses[at(node)]) {
        const int g = grouping_.group_of[at(access.node)];
        if (g >= 0 && sums_.contains(g) && goes_over(grouping_.groups[at(g)].domain, group.domain))
          last = std::max(last, g);
      }
    }
    return last < 0 ? nullptr : &sums_.at(last);
  }

  // Kernels in front of an anchor's write its weights anew, once, and read what those are computed from.
  void refuse_packed(const Group& group, const LoweredGroup& lowered) {
    std::map<std::string, Refusal> by_producer;
    std::int64_t packed_bytes = 0;
    for (const ExtraValue& packed : lowered.extras) packed_bytes += bytes(packed.dtype, elements_of(packed));
    for (std::size_t k = 0; k + 1 < lowered.kernels.size(); ++k) {
      const std::string anchor = label(graph_, group.anchor), &packed = lowered.extras[0].label;
      const Type& weights = graph_.value(group.anchor)->operands[1].value.type();
      by_producer[packed] = {RefusalCode::packed, packed, anchor,
                             fmt::format("{} reads its weights {} many times, so a kernel before it lays them out anew",
                                         anchor, weights.str()),
                             2 * packed_bytes};
      for (const int v : lowered.kernels[k].values) {
        if (v >= graph_.value_count() || grouping_.group_of[at(v)] < 0) continue;
        const std::string producer = label(graph_, v);
        const Type& type = graph_.value(v).type();
        by_producer[producer] = {RefusalCode::packed, producer, packed,
                                 fmt::format("{} {} is laid out anew for {} by a kernel that does nothing else",
                                             producer, type.str(), anchor),
                                 type.bytes()};
      }
    }
    for (auto& [producer, refusal] : by_producer) draft_.refusals.push_back(std::move(refusal));
  }
  static std::int64_t elements_of(const ExtraValue& extra) {
    return std::accumulate(extra.dims.begin(), extra.dims.end(), std::int64_t{1}, std::multiplies<>());
  }

  void failed(const Group& group, const Error& error) {
    Failed failed;
    for (const auto* list : {&group.inner, &group.stores, &group.reductions, &group.finals, &group.copies}) {
      for (const int node : *list) failed.said.group += (failed.said.group.empty() ? "" : ", ") + label(graph_, node);
    }
    failed.said.why = printable(error.what());
    failed.nodes = computed_nodes(graph_, grouping_.stored, group);
    failed.said.layer = name_by_layer(graph_, failed.nodes);
    if (!options_.fall_back || options_.reschedule || ir::is_strict())
      throw UnsupportedError(
          fmt::format("no kernel for {} ({}): {}", failed.said.layer, failed.said.group, failed.said.why));
    for (const int node : failed.nodes) failed.split |= alone_.empty() || !alone_[at(node)];
    failures_.push_back(std::move(failed));
  }

  // What the group's results take, as a graph of its own on draft values. The step is billed with what the call moves,
  // its operands and its results; the kernel, which stands in where the library is missing, may read less. One that
  // does not read an operand at all, where each tap is outside of the image, is left as it is.
  void give_to_library(int g, PlanStep& step) const {
    const Group& group = grouping_.groups[at(g)];
    std::vector<int> results{group.stores.at(0)};
    results.insert(results.end(), group.reductions.begin(), group.reductions.end());
    CapturedCall call = capture_call(graph_, grouping_, g, results);
    LibraryOp library{std::move(call.graph), {}};
    for (const int node : call.nodes) library.values.push_back(value_of_[at(node)]);
    const auto is_read = [&](int value) {
      return std::find(step.values.begin(), step.values.end(), value) != step.values.end();
    };
    if (!std::all_of(library.values.begin(), library.values.end(), is_read)) return;
    step.read_bytes = step.written_bytes = 0;
    const auto results_begin = library.values.end() - static_cast<std::ptrdiff_t>(results.size());
    const auto bytes_of = [&](int value) { return draft_.values[at(value)].bytes; };
    for (const int value : std::set<int>(library.values.begin(), results_begin)) step.read_bytes += bytes_of(value);
    for (auto value = results_begin; value != library.values.end(); ++value) step.written_bytes += bytes_of(*value);
    step.library = std::move(library);
  }

  const ir::Graph& graph_;
  const PlanOptions& options_;
  const bool in_place_;
  const std::vector<bool>& alone_;
  StepMaker& steps_;
  std::vector<Failed> failures_;
  Grouping grouping_;
  Draft draft_;
  std::vector<std::vector<std::pair<int, const Access*>>> readers_;  // by graph value: groups and how they read it
  std::deque<Access> at_shifts_;
  std::vector<std::vector<int>> last_read_in_;  // by group: graph values that no later group reads
  std::vector<bool> is_result_, plan_owned_;    // by graph value
  std::vector<int> value_of_;                   // draft value of a graph value
  std::map<int, Schedule> sums_;                // by group without an anchor that adds up
};

}  // namespace

Draft draft_fused(const ir::Graph& graph, const PlanOptions& options, bool in_place, StepMaker& steps) {
  std::vector<bool> alone;
  std::vector<Fallback> fallbacks;
  for (;;) {  // each round splits a group at least, or ends
    FusedDraft round(graph, options, in_place, alone, steps);
    Draft draft = round.run();
    if (round.failures().empty()) {
      draft.fallbacks = std::move(fallbacks);
      return draft;
    }
    std::vector<int> without;
    std::string why;
    alone.resize(at(graph.value_count()));
    for (const Failed& failed : round.failures()) {
      if (!failed.split) {
        without.insert(without.end(), failed.nodes.begin(), failed.nodes.end());
        why += (why.empty() ? "" : "; ") + failed.said.group + ": " + failed.said.why;
        continue;
      }
      for (const int node : failed.nodes) alone[at(node)] = true;
      fallbacks.push_back(failed.said);
    }
    if (!without.empty()) throw NoKernel(why, graph, std::move(without), false);
  }
}

}  // namespace fusejit::scheduler
