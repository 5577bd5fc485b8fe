// Grows groups in graph order: every stored value joins the latest group that it shares elements with, if may_fuse
// agrees and no cycle arises, else it opens a group. Linear in the graph but for the look-back of the cycle check,
// which is bounded by node order.
#include "scheduler/fuse/fuse.h"

#include <algorithm>
#include <map>
#include <set>
#include <span>
#include <tuple>
#include <utility>

#include "ir/base/at.h"
#include "ir/base/check.h"
#include "scheduler/call_results.h"
#include "scheduler/fuse/analysis.h"
#include "scheduler/fuse/choose_stored.h"
#include "scheduler/fuse/copies.h"
#include "scheduler/fuse/gradients.h"
#include "scheduler/fuse/homes.h"
#include "scheduler/fuse/links.h"
#include "scheduler/fuse/masks.h"
#include "scheduler/fuse/may_fuse.h"
#include "scheduler/fuse/order.h"
#include "scheduler/library.h"

namespace fusejit::scheduler {
namespace {

class Grower {
 public:
  Grower(const ir::Graph& graph, const Target& target, const LibrarySupports& supports, const std::vector<bool>& alone,
         const Rules& rules, std::vector<Home> homes, std::vector<CallResult> call_results)
      : graph_(graph),
        target_(target),
        supports_(supports),
        alone_(alone),
        rules_(rules),
        users_(users_of_nodes(graph)) {
    grouping_.homes = std::move(homes), grouping_.call_results = std::move(call_results);
    choose_stored(graph, target, alone, rules, grouping_);
    grouping_.group_of.assign(at(graph.value_count()), -1);
    grouping_.accesses.resize(at(graph.value_count()));
    grouping_.as_bits.resize(at(graph.value_count()));
    asked_.resize(at(graph.value_count()));
    for (const CallResult& asked : grouping_.call_results) {
      asked_[at(asked.result)] = &asked;
      for (const int sum : asked.sums) asked_[at(sum)] = &asked;
      if (asked.mask >= 0) grouping_.as_bits[at(asked.mask)] = true;
    }
  }

  Grouping run() {
    for (int v = static_cast<int>(graph_.parameters().size()); v < graph_.value_count(); ++v) {
      if (grouping_.stored[at(v)] && graph_.value(v)->op != ir::Op::constant && !grouping_.is_in_place(v)) place(v);
    }
    if (rules_.has(Rule::masks)) keep_masks(graph_, target_, users_, links_, grouping_);
    if (rules_.has(Rule::join))
      store_in_copies(graph_, target_, joins_gradients(rules_, target_), alone_, links_, grouping_);
    tidy_refusals();
    order_groups(graph_, links_, grouping_);
    return std::move(grouping_);
  }

 private:
  void place(int v) {
    const ir::Node& node = *graph_.value(v);
    const Type& domain = domain_of(node);
    const std::vector<Access>& accesses = grouping_.accesses[at(v)] = accesses_of(graph_, grouping_.stored, v, domain);
    for (const Access& access : accesses)
      if (grouping_.is_in_place(access.node)) refuse_parts(access.node, v);
    const Candidate candidate{v, domain, accesses};
    std::vector<int> candidates;  // producers first, then groups that read the same elements, latest first
    for (const Access& access : accesses) add(candidates, grouping_.group_of[at(access.node)]);
    std::sort(candidates.rbegin(), candidates.rend());
    if (const CallResult* asked = asked_[at(v)]) {  // of two calls that could take it along
      const auto found = std::find(candidates.begin(), candidates.end(), grouping_.group_of[at(asked->anchor)]);
      if (found != candidates.end()) std::rotate(candidates.begin(), found, found + 1);
    }
    const std::size_t producers = candidates.size();
    if (!ir::op_def(node.op).is_contraction()) {
      std::vector<int> readers, read = views_reduced_by(v);
      for (const Access& access : accesses) {
        if (is_identity(access, domain, graph_.value(access.node).type())) read.push_back(access.node);
        const std::vector<int> sums = sums_of_call(access.node);
        read.insert(read.end(), sums.begin(), sums.end());
      }
      for (const int node : read) {
        for (const int reader : latest(readers_[node])) {
          if (std::find(candidates.begin(), candidates.end(), reader) == candidates.end()) add(readers, reader);
        }
      }
      std::sort(readers.rbegin(), readers.rend());
      // Who adds up the same elements already has the moments of a second variance (a running one, unbiased) for
      // nothing.
      std::stable_partition(readers.begin(), readers.end(), [&](int group) { return reduces_the_same(group, v); });
      candidates.insert(candidates.end(), readers.begin(), readers.end());
    }
    for (std::size_t i = 0; i < candidates.size(); ++i) {
      const int group = candidates[i];
      const Verdict verdict = may_join(group, candidate);
      std::vector<Access> over_anchor;
      std::vector<int> turned;
      const bool moved = !verdict.ok && i < producers &&
                         (may_join_reshaped(group, v, over_anchor) || may_join_turned(group, v, turned, over_anchor));
      if (verdict.ok || moved) {
        for (std::size_t other = i + 1; other < producers; ++other)
          refuse(candidates[other], candidate, passed_over(candidates[other], group, candidate));
        if (!turned.empty()) grouping_.groups[at(group)].turned[v] = std::move(turned);
        if (moved) grouping_.accesses[at(v)] = std::move(over_anchor);
        const bool reduces = ir::op_def(node.op).family == ir::Family::reduce;
        return join(group, !moved ? verdict.as : reduces ? JoinAs::reduction : JoinAs::store, candidate);
      }
      if (i < producers) refuse(group, candidate, verdict);
    }
    open(candidate);
  }

  // What reads a concatenation in place waits for all who store parts of it.
  void refuse_parts(int whole, int reader) {
    for (const int part : stored_parts(graph_, grouping_, whole)) {
      grouping_.refusals.push_back({part,
                                    reader,
                                    {RefusalCode::concatenated, label(graph_, part), label(graph_, reader),
                                     fmt::format("{} reads all of {}, in whose memory {} is stored",
                                                 label(graph_, reader), label(graph_, whole), label(graph_, part)),
                                     graph_.value(part).type().bytes()}});
    }
  }

  // What follows an anchor through a reshape, such as the bias behind a squeeze, can be computed over the anchor's own
  // domain: its elements are the same, at other indices. `accesses`: what it reads there. Not where anything but those
  // elements lies at quotients and remainders, as where rows become an image in NHWC: dividing for each lane costs more
  // than another pass over memory, and nothing proves that such stores are apart.
  bool may_join_reshaped(int group, int v, std::vector<Access>& accesses) {
    const ir::Node& node = *graph_.value(v);
    const Type &domain = grouping_.groups[at(group)].domain, &own = domain_of(node);
    const int anchor = grouping_.groups[at(group)].anchor;
    const bool reduces = ir::op_def(node.op).family == ir::Family::reduce,
               reshapes = anchor >= 0 && !ir::op_def(node.op).is_contraction() && own.shape != domain.shape &&
                          own.elements() == domain.elements() && domain.elements() > 0;
    if (!reshapes || (reduces && runs_in_library(graph_, target_, anchor))) return false;
    if (!reduces && !are_plain(point_of(domain, seen_over(domain, node.type).shape))) return false;
    accesses = accesses_of(graph_, grouping_.stored, v, domain);
    for (const Access& access : accesses) {
      const Type& type = graph_.value(access.node).type();
      const bool at_hand = is_identity(access, domain, type) && seen_over(domain, type).shape == domain.shape;
      if (!at_hand && !are_plain(access.index)) return false;
    }
    const Verdict verdict = may_join(group, {v, domain, accesses});
    return verdict.ok && verdict.as == (reduces ? JoinAs::reduction : JoinAs::store);
  }

  // The same behind a permutation, such as one to rows of channels and back. `turned`: the dim of the anchor's domain
  // that each of the value's is. Only where lanes run along neighbours in memory: single elements, each on a line of
  // its own, cost more than another pass.
  bool may_join_turned(int group, int v, std::vector<int>& turned, std::vector<Access>& accesses) {
    const ir::Node& node = *graph_.value(v);
    const Group& to = grouping_.groups[at(group)];
    const bool turns =
        to.anchor >= 0 && !ir::op_def(node.op).is_contraction() && ir::op_def(node.op).family != ir::Family::reduce &&
        node.type.shape.rank() == to.domain.shape.rank() && node.type.elements() == to.domain.elements() &&
        to.domain.elements() > 1 && grouping_.homes[at(v)].root < 0 && !runs_in_library(graph_, target_, to.anchor);
    if (!turns) return false;
    std::vector<int> order = order_of_dims(graph_, grouping_, group, v);
    if (order.empty() || order[at(innermost_dim(node.type))] != lane_dim(*graph_.value(to.anchor))) return false;
    accesses = accesses_of(graph_, grouping_.stored, v, to.domain, order);
    if (!std::all_of(accesses.begin(), accesses.end(), [](const Access& a) { return are_plain(a.index); }))
      return false;
    const Verdict verdict = may_join(group, {v, to.domain, accesses});
    if (!verdict.ok || verdict.as != JoinAs::store) return false;
    turned = std::move(order);
    return true;
  }
  // Dims of the domain as they are, no quotients and remainders.
  static bool are_plain(const std::vector<ir::Index>& point) {
    return std::all_of(point.begin(), point.end(),
                       [](const ir::Index& index) { return index.is_constant() || plain_dim(index) >= 0; });
  }

  Verdict may_join(int group, const Candidate& candidate) {
    for (const int node : {candidate.node, links_.first_node[at(group)]}) {
      if (is_alone(node)) return no_kernel(node);
    }
    Verdict verdict = may_fuse(graph_, grouping_, group, candidate);
    if (verdict.ok) ask_rules(group, candidate, verdict);
    if (verdict.ok) ask_library(group, candidate, verdict);
    if (verdict.ok && makes_cycle(group, candidate.accesses)) {
      verdict = {false, verdict.as, RefusalCode::cycle,
                 fmt::format("{} also needs a value that depends on the kernel", label(graph_, candidate.node))};
    }
    return verdict;
  }
  // Why a value that joins `chosen` does not join `group`, which it reads as well. Whether a cycle would arise is not
  // asked: that is a walk as long as the graph.
  Verdict passed_over(int group, int chosen, const Candidate& candidate) const {
    if (is_alone(links_.first_node[at(group)])) return no_kernel(links_.first_node[at(group)]);
    const Verdict verdict = may_fuse(graph_, grouping_, group, candidate);
    if (!verdict.ok) return verdict;
    const std::string self = label(graph_, candidate.node), kernel = label(graph_, links_.first_node[at(chosen)]),
                      other = label(graph_, links_.first_node[at(group)]),
                      over = domain_of(*graph_.value(candidate.node)).str();
    const bool two_anchors = grouping_.groups[at(chosen)].anchor >= 0 && grouping_.groups[at(group)].anchor >= 0;
    return {false, verdict.as, RefusalCode::other_kernel,
            two_anchors
                ? fmt::format("{} over {} runs with {}; that and {} are two anchors, and ops are fused around one",
                              self, over, kernel, other)
                : fmt::format("{} over {} runs with {}; what runs with {} was begun apart, and groups are not joined",
                              self, over, kernel, other)};
  }
  Verdict no_kernel(int node) const {
    return {false, JoinAs::store, RefusalCode::no_kernel,
            fmt::format("{} runs alone: no kernel could be made for it together with others", label(graph_, node))};
  }

  bool is_alone(int node) const { return !alone_.empty() && alone_[at(node)]; }

  void ask_rules(int group, const Candidate& candidate, Verdict& verdict) const {
    const auto is_own = [&](const Access& access) { return grouping_.group_of[at(access.node)] == group; };
    const bool follows = std::any_of(candidate.accesses.begin(), candidate.accesses.end(), is_own);
    const Rule rule = verdict.as == JoinAs::final               ? Rule::finalise
                      : !follows                                ? Rule::shared
                      : grouping_.groups[at(group)].anchor >= 0 ? Rule::epilogue
                      : verdict.as == JoinAs::reduction         ? Rule::reduce
                                                                : Rule::chain;
    if (rules_.has(rule)) return;
    verdict = {false, verdict.as, RefusalCode::rule_off, fmt::format("rule {} is switched off", name(rule))};
  }

  // A group whose anchor a library runs takes what one call of it does: elements of one value, and sums of those.
  void ask_library(int group, const Candidate& candidate, Verdict& verdict) const {
    const Group& call_group = grouping_.groups[at(group)];
    const int anchor = call_group.anchor;
    if (anchor < 0 || !runs_in_library(graph_, target_, anchor)) return;
    const auto no = [&](const std::string& why) {
      verdict = {false, verdict.as, RefusalCode::library_call,
                 fmt::format("{} is a call of cuDNN; {}", label(graph_, anchor), why)};
    };
    if (!supports_ || verdict.as == JoinAs::final) return no("it does nothing else");
    const bool sums = verdict.as == JoinAs::reduction;
    std::vector<int> results{sums ? call_group.stores.back() : candidate.node};
    const CallResult* asked = sums ? asked_[at(candidate.node)] : nullptr;  // all of its sums, or none
    const std::vector<int>& made = asked ? asked->sums : call_group.reductions;
    results.insert(results.end(), made.begin(), made.end());
    if (sums && !asked) results.push_back(candidate.node);
    const CapturedCall call = capture_call(graph_, grouping_, group, results);
    const auto parameters = std::span(call.nodes).first(call.nodes.size() - results.size());
    if (std::find(parameters.begin(), parameters.end(), anchor) != parameters.end())
      return no(fmt::format("{} does not read it", label(graph_, candidate.node)));
    const auto is_of_bytes = [&](int node) {
      return graph_.value(node).type().dtype == DType::boolean && !grouping_.as_bits[at(node)];
    };
    if (std::any_of(parameters.begin(), parameters.end(), is_of_bytes)) return no("it takes a mask as bits");
    if (const int other = needed_elsewhere(group, results); other >= 0)
      return no(fmt::format("it does not write what {} needs", label(graph_, other)));
    const LibraryAnswer answer = supports_(call.graph, target_);
    if (!answer.ok) no(answer.why);
  }
  // A node that needs what a call for `results` computes on the way, itself if it is a result of the graph; -1: none.
  int needed_elsewhere(int group, const std::vector<int>& results) const {
    const auto is_written = [&](int v) { return std::find(results.begin(), results.end(), v) != results.end(); };
    std::vector<int> open;
    for (const int store : grouping_.groups[at(group)].stores) open.push_back(store);
    std::set<int> seen(open.begin(), open.end());
    while (!open.empty()) {
      const int v = open.back();
      open.pop_back();
      if (is_written(v)) continue;
      if (is_result(graph_, v)) return v;
      for (const int user : users_[at(v)]) {
        const bool inside = is_written(user) || !grouping_.stored[at(user)] || grouping_.group_of[at(user)] == group;
        if (!inside) return user;
        if (seen.insert(user).second) open.push_back(user);
      }
    }
    return -1;
  }

  // A learning rate has readers without number; sharing a read is worth looking at a few of them.
  static std::span<const int> latest(const std::vector<int>& readers) {
    constexpr std::size_t kMost = 32;
    return std::span(readers).last(std::min(readers.size(), kMost));
  }

  // Views, such as a concatenation, whose own elements a reduction reads and that are not stored: what stands in memory
  // is read at other indices than the one being computed, and says nothing of who reads the same elements.
  std::vector<int> views_reduced_by(int v) const {
    if (ir::op_def(graph_.value(v)->op).family != ir::Family::reduce) return {};
    std::vector<int> open{expression_of(graph_, v)}, views;
    std::set<int> seen(open.begin(), open.end());
    while (!open.empty()) {
      const int node = open.back();
      open.pop_back();
      if (node < 0 || grouping_.stored[at(node)]) continue;
      const ir::Family family = ir::op_def(graph_.value(node)->op).family;
      if (family == ir::Family::view) views.push_back(node);
      if (family != ir::Family::elementwise) continue;
      for (const int operand : graph_.operands(node)) {
        if (seen.insert(operand).second) open.push_back(operand);
      }
    }
    return views;
  }

  // What is done to the sums of one call, which finishes none itself, is one kernel: those of the call that this is of.
  std::vector<int> sums_of_call(int v) const {
    const int group = grouping_.group_of[at(v)];
    if (group < 0) return {};
    const int anchor = grouping_.groups[at(group)].anchor;
    const std::vector<int>& sums = grouping_.groups[at(group)].reductions;
    const bool is_sum = std::find(sums.begin(), sums.end(), v) != sums.end();
    return is_sum && anchor >= 0 && runs_in_library(graph_, target_, anchor) ? sums : std::vector<int>{};
  }

  bool reduces_the_same(int group, int v) const {
    if (ir::op_def(graph_.value(v)->op).family != ir::Family::reduce) return false;
    const std::vector<int>& reductions = grouping_.groups[at(group)].reductions;
    return std::any_of(reductions.begin(), reductions.end(), [&](int other) {
      return expression_of(graph_, other) == expression_of(graph_, v) &&
             reduced_dims(*graph_.value(other)) == reduced_dims(*graph_.value(v));
    });
  }

  void add_reader(int node, int group) {
    std::vector<int>& readers = readers_[node];
    const std::span<const int> known = latest(readers);
    if (std::find(known.begin(), known.end(), group) == known.end()) readers.push_back(group);
  }

  static void add(std::vector<int>& list, int group) {
    if (group >= 0 && std::find(list.begin(), list.end(), group) == list.end()) list.push_back(group);
  }

  void open(const Candidate& candidate) {
    const ir::Node& node = *graph_.value(candidate.node);
    Group group;
    group.domain = domain_of(node);
    if (ir::op_def(node.op).is_contraction()) group.anchor = candidate.node;
    grouping_.groups.push_back(group);
    links_.open(candidate.node);
    join(static_cast<int>(grouping_.groups.size()) - 1,
         ir::op_def(node.op).family == ir::Family::reduce ? JoinAs::reduction : JoinAs::store, candidate);
  }

  void join(int group_id, JoinAs as, const Candidate& candidate) {
    Group& group = grouping_.groups[at(group_id)];
    const ir::Node& node = *graph_.value(candidate.node);
    grouping_.group_of[at(candidate.node)] = group_id;
    links_.add_node(group_id, candidate.node);
    group.length += grouping_.lengths[at(candidate.node)];
    if (as == JoinAs::store) group.stores.push_back(candidate.node);
    if (as == JoinAs::final) group.finals.push_back(candidate.node);
    if (as == JoinAs::reduction) {
      group.reductions.push_back(candidate.node);
      group.reduced = reduced_over(node, group.domain.shape).value();
      for (const int view : views_reduced_by(candidate.node)) add_reader(view, group_id);
    }
    for (const Access& access : candidate.accesses) {
      for (const int part : stored_parts(graph_, grouping_, access.node)) {
        const int producer = grouping_.group_of[at(part)];
        if (producer >= 0 && producer != group_id) links_.add_producer(group_id, producer);
      }
      if (as != JoinAs::final) add_reader(access.node, group_id);
    }
  }

  // True if one of the accessed groups other than `group` depends on it, or if what is accessed is whole only when
  // `group` has stored its part of it.
  bool makes_cycle(int group, const std::vector<Access>& accesses) {
    std::vector<int> accessed;
    for (const Access& access : accesses) {
      for (const int part : stored_parts(graph_, grouping_, access.node)) {
        const int other = grouping_.group_of[at(part)];
        if (other == group && part != access.node) return true;
        if (other >= 0 && other != group) accessed.push_back(other);
      }
    }
    return dependencies_.any_needs(accessed, group);
  }

  void refuse(int group, const Candidate& candidate, const Verdict& verdict) {
    for (const Access& access : candidate.accesses) {
      if (grouping_.group_of[at(access.node)] != group) continue;
      grouping_.refusals.push_back({access.node,
                                    candidate.node,
                                    {verdict.code, label(graph_, access.node), label(graph_, candidate.node),
                                     verdict.why, graph_.value(access.node).type().bytes()}});
    }
  }

  // What was said of a pair before there were groups is dropped if the two run together after all, and nothing is said
  // twice: of equal refusals the one that moves most stays.
  void tidy_refusals() {
    std::map<std::tuple<RefusalCode, int, int>, std::size_t> known;
    std::vector<Refused> kept;
    for (Refused& refused : grouping_.refusals) {
      const auto& [producer, consumer, refusal] = refused;
      const int group = grouping_.group_of[at(producer)];
      const bool together = refusal.code == RefusalCode::cheaper_stored && group >= 0 &&
                            groups_with(grouping_, users_, consumer) == std::vector<int>{group};
      if (together) continue;
      const auto [place, fresh] = known.try_emplace(std::tuple(refusal.code, producer, consumer), kept.size());
      if (fresh) {
        kept.push_back(std::move(refused));
      } else {
        std::int64_t& bytes = kept[place->second].refusal.bytes;
        bytes = std::max(bytes, refusal.bytes);
      }
    }
    grouping_.refusals = std::move(kept);
  }

  const ir::Graph& graph_;
  const Target& target_;
  const LibrarySupports& supports_;
  const std::vector<bool>& alone_;
  const Rules rules_;
  const std::vector<std::vector<int>> users_;  // by node
  Grouping grouping_;
  std::vector<const CallResult*> asked_;  // by node: results and sums of calls
  GroupLinks links_;
  DependencyWalk dependencies_{links_};
  // Value -> groups that read its elements; of a view that is not stored, those that reduce them.
  std::map<int, std::vector<int>> readers_;
};

bool has_concatenations(const ir::Graph& graph) {
  for (int v = 0; v < graph.value_count(); ++v)
    if (graph.value(v)->op == ir::Op::concat) return true;
  return false;
}

}  // namespace

Grouping make_groups(const ir::Graph& graph, const Target& target, const LibrarySupports& supports,
                     const std::vector<bool>& alone, const Rules& rules, bool in_place) {
  const bool has_homes = in_place && rules.has(Rule::epilogue) && has_concatenations(graph);
  Grouping computed_where_read;
  if (has_homes) choose_stored(graph, target, alone, rules, computed_where_read);
  std::vector<CallResult> call_results = find_call_results(graph, target, supports, alone, rules);
  // Whether parts can be stored in place, or masks as bits, is known when there are groups; each round refuses one at
  // least, or ends.
  std::vector<bool> refused(at(graph.value_count()));
  for (;;) {
    std::vector<Home> homes(refused.size());
    if (has_homes) homes = find_homes(graph, alone, computed_where_read, refused);
    Grouping grouping = Grower(graph, target, supports, alone, rules, std::move(homes), call_results).run();
    const std::vector<int> unfit = has_homes ? unfit_homes(graph, grouping) : std::vector<int>{};
    std::vector<CallResult> fit = fit_call_results(graph, target, grouping);
    if (unfit.empty() && fit == call_results) return grouping;
    for (const int v : unfit) refused[at(v)] = true;
    call_results = std::move(fit);
  }
}

}  // namespace fusejit::scheduler
