#include "scheduler/fuse/masks.h"

#include <algorithm>
#include <set>
#include <span>
#include <utility>

#include "ir/base/at.h"
#include "scheduler/fuse/analysis.h"
#include "scheduler/fuse/may_fuse.h"
#include "scheduler/library.h"
#include "scheduler/lower/group_kernel.h"

namespace fusejit::scheduler {
namespace {

// Another way for a member of a group to compute its value.
struct Rewritten {
  int node;
  std::vector<Access> accesses;
};

// A convolution whose lanes end within a byte: those of a tile are channels of one group. Depthwise, they are of many.
bool divides_bytes(const ir::Node& anchor) {
  const ir::OpDef& row = ir::op_def(anchor.op);
  if (!row.is_contraction() || row.matrix || anchor.type.shape.rank() != 4) return false;
  const std::int64_t groups = anchor.attrs.integer("groups"), channels = anchor.type.shape[1];
  const bool is_depthwise = channels == groups && anchor.operands[0].value.type().shape[1] == groups;
  return groups > 1 && !is_depthwise && channels / groups % 8 != 0;
}

// On CUDA a thread that stores bits accesses eight neighbours of each value at once, which has to be aligned: a
// narrower access would store less than a byte.
bool accesses_are_aligned(const ir::Graph& graph, const Grouping& grouping, int home) {
  const Group& group = grouping.groups[at(home)];
  const int lane = kPlaceholder + innermost_dim(group.domain);
  const auto is_aligned = [&](const Access& access) {
    if (access.whole || grouping.group_of[at(access.node)] == home) return true;
    ir::Index element;
    for (std::size_t d = 0; d < access.dims.size(); ++d) element = element * access.dims[d] + access.index[d];
    if (element.coefficient_of(lane) != 1) return true;  // lane by lane
    const std::int64_t aligned = std::min<std::int64_t>(8, 128 / bits(memory_dtype(graph, grouping, access.node)));
    const ir::Index first = element.without({ir::AtomKind::variable, lane, nullptr, 0});
    return first.constant() % aligned == 0 &&
           std::all_of(first.terms().begin(), first.terms().end(),
                       [&](const ir::IndexTerm& term) { return term.coefficient % aligned == 0; });
  };
  for (const auto* list : {&group.stores, &group.reductions})
    for (const int node : *list)
      if (!std::all_of(grouping.accesses[at(node)].begin(), grouping.accesses[at(node)].end(), is_aligned))
        return false;
  return true;
}

class MaskKeeper {
 public:
  MaskKeeper(const ir::Graph& graph, const Target& target, const std::vector<std::vector<int>>& users,
             GroupLinks& links, Grouping& grouping)
      : graph_(graph), target_(target), users_(users), links_(links), grouping_(grouping), dependencies_(links) {}

  // The outermost comparison of an expression is met first: what it consists of is then read by nobody else.
  void run() {
    for (int v = graph_.value_count() - 1; v >= static_cast<int>(graph_.parameters().size()); --v) {
      const ir::Node& node = *graph_.value(v);
      const bool is_mask = node.type.dtype == DType::boolean && node.region == 0 && !grouping_.stored[at(v)] &&
                           ir::op_def(node.op).family == ir::Family::elementwise;
      if (is_mask) consider(v);
    }
    std::erase_if(grouping_.refusals, [&](const Refused& refused) {
      return refused.refusal.code != RefusalCode::cheaper_stored &&
             no_longer_read_.contains({refused.producer, refused.consumer});
    });
  }

 private:
  void consider(int mask) {
    const Type& type = graph_.value(mask).type();
    const std::vector<Access> accesses = accesses_of(graph_, grouping_.stored, mask, type);
    const std::vector<int> readers = groups_with(grouping_, users_, mask);
    const int home = home_of(mask, accesses, readers);
    if (home < 0) return;
    const bool as_bits = can_be_bits(graph_, target_, grouping_, mask, home, readers);
    const std::int64_t bytes = as_bits ? fusejit::bytes(DType::b1, type.elements()) : type.bytes();

    std::int64_t saved = -bytes;
    std::vector<Rewritten> rewritten;
    grouping_.stored[at(mask)] = true;
    const bool elementwise = reads_less(mask, readers, bytes, saved, rewritten);
    if (!elementwise || saved <= 0) {
      grouping_.stored[at(mask)] = false;
      return;
    }
    keep(mask, home, as_bits, accesses);
    for (const int g : readers) links_.add_producer(g, home);
    for (Rewritten& member : rewritten) take(mask, saved, std::move(member));
  }

  // A group that has at hand all that is compared, element by element, and runs before all readers; -1: there is none.
  int home_of(int mask, const std::vector<Access>& accesses, const std::vector<int>& readers) {
    const bool any_call = std::any_of(readers.begin(), readers.end(), [&](int g) { return is_call(g); });
    if (readers.empty() || any_call) return -1;  // a call of a library takes what it was asked to take
    int first_reader = graph_.value_count();
    for (const int g : readers) first_reader = std::min(first_reader, links_.first_node[at(g)]);
    std::vector<int> candidates;
    for (const int operand : graph_.operands(mask)) {
      if (operand < 0) continue;
      const std::vector<int> groups = groups_with(grouping_, users_, operand);
      candidates.insert(candidates.end(), groups.begin(), groups.end());
    }
    std::sort(candidates.begin(), candidates.end());
    for (const int g : candidates) {
      const bool fits = links_.last_node[at(g)] < first_reader && has_at_hand(g, accesses) && takes(g, mask, accesses);
      if (fits && !needs_any(g, readers)) return g;
    }
    return -1;
  }
  // Its own nodes come first, but what it needs may have grown by later ones, which read what a reader computes.
  bool needs_any(int g, const std::vector<int>& readers) {
    return std::any_of(readers.begin(), readers.end(),
                       [&](int reader) { return dependencies_.any_needs(std::span(&g, 1), reader); });
  }
  bool has_at_hand(int g, const std::vector<Access>& accesses) const {
    const Group& group = grouping_.groups[at(g)];
    return std::all_of(accesses.begin(), accesses.end(), [&](const Access& access) {
      if (grouping_.group_of[at(access.node)] == g) return true;
      return std::any_of(group.stores.begin(), group.stores.end(), [&](int node) {
        const std::vector<Access>& read = grouping_.accesses[at(node)];
        return std::find(read.begin(), read.end(), access) != read.end();
      });
    });
  }

  bool is_call(int g) const {
    const int anchor = grouping_.groups[at(g)].anchor;
    return anchor >= 0 && runs_in_library(graph_, target_, anchor);
  }
  bool takes(int home, int mask, const std::vector<Access>& accesses) const {
    if (is_call(home)) return false;
    const Verdict verdict = may_fuse(graph_, grouping_, home, {mask, graph_.value(mask).type(), accesses});
    return verdict.ok && verdict.as == JoinAs::store;
  }

  // What the kernels that compute the mask would read if it were in memory, as it is marked to be: `saved` grows by the
  // bytes that they no longer read. False if one of them reads other elements of it than its own.
  bool reads_less(int mask, const std::vector<int>& readers, std::int64_t bytes, std::int64_t& saved,
                  std::vector<Rewritten>& rewritten) const {
    for (const int g : readers) {
      std::set<int> before, after;
      const Group& group = grouping_.groups[at(g)];
      for (const auto* list : {&group.stores, &group.reductions, &group.finals}) {
        for (const int node : *list) {
          const std::vector<Access>& old = grouping_.accesses[at(node)];
          add_outside(g, old, before);
          std::vector<Access> now =
              accesses_of(graph_, grouping_.stored, node, domain_in(group, node), turned_in(group, node));
          add_outside(g, now, after);
          const bool elsewhere = std::any_of(now.begin(), now.end(), [&](const Access& access) {
            return access.node == mask && !access.whole &&
                   !is_identity(access, domain_in(group, node), graph_.value(mask).type());
          });
          if (elsewhere) return false;
          if (now != old) rewritten.push_back({node, std::move(now)});
        }
      }
      for (const int node : before) saved += graph_.value(node).type().bytes();
      for (const int node : after) saved -= node == mask ? bytes : graph_.value(node).type().bytes();
    }
    return true;
  }
  void add_outside(int group, const std::vector<Access>& accesses, std::set<int>& nodes) const {
    for (const Access& access : accesses)
      if (grouping_.group_of[at(access.node)] != group) nodes.insert(access.node);
  }
  // What follows an anchor through a reshape or a permutation is computed over the anchor's domain.
  const Type& domain_in(const Group& group, int node) const {
    const bool contraction = ir::op_def(graph_.value(node)->op).is_contraction();
    const auto is_of = [node](const std::vector<int>& list) {
      return std::find(list.begin(), list.end(), node) != list.end();
    };
    const bool of_domain = is_of(group.stores) || is_of(group.reductions);
    const Type& own = domain_of(*graph_.value(node));
    const bool over_anchor = own.shape != group.domain.shape || group.turned.contains(node);
    return !contraction && of_domain && over_anchor ? group.domain : own;
  }

  void keep(int mask, int home, bool as_bits, const std::vector<Access>& accesses) {
    Group& group = grouping_.groups[at(home)];
    grouping_.as_bits[at(mask)] = as_bits;
    grouping_.group_of[at(mask)] = home;
    grouping_.accesses[at(mask)] = accesses;
    group.stores.insert(std::upper_bound(group.stores.begin(), group.stores.end(), mask), mask);
    group.length += grouping_.lengths[at(mask)];
  }

  // The member reads the mask from now on, and what is compared no longer, unless for something else.
  void take(int mask, std::int64_t saved, Rewritten member) {
    std::vector<Access>& old = grouping_.accesses[at(member.node)];
    const auto reads = [](const std::vector<Access>& accesses, int node) {
      return std::any_of(accesses.begin(), accesses.end(), [&](const Access& access) { return access.node == node; });
    };
    for (const Access& access : old)
      if (!reads(member.accesses, access.node)) no_longer_read_.emplace(access.node, member.node);
    old = std::move(member.accesses);
    const std::int64_t bytes = memory_bytes(graph_, grouping_, mask);
    grouping_.refusals.push_back(
        {mask,
         member.node,
         {RefusalCode::cheaper_stored, label(graph_, mask), label(graph_, member.node),
          fmt::format("{} bytes of it are kept, so that {} bytes less are read than to compute it again", bytes, saved),
          bytes}});
  }

  const ir::Graph& graph_;
  const Target& target_;
  const std::vector<std::vector<int>>& users_;
  GroupLinks& links_;
  Grouping& grouping_;
  DependencyWalk dependencies_;
  std::set<std::pair<int, int>> no_longer_read_;  // stored values and who read them
};

}  // namespace

// Eight neighbours share a byte, so whoever stores them has them in the lanes of one vector. A tile finds what it reads
// by every dim, also where there is one element along the last.
bool can_be_bits(const ir::Graph& graph, const Target& target, const Grouping& grouping, int mask, int home,
                 const std::vector<int>& readers) {
  const Type& type = graph.value(mask).type();
  const int last = innermost_dim(type);
  if (last < 0 || type.shape[last] % 8 != 0) return false;
  const bool by_tile =
      std::any_of(readers.begin(), readers.end(), [&](int g) { return grouping.groups[at(g)].anchor >= 0; });
  if (by_tile && physical_dims(type).back() % 8 != 0) return false;
  const int anchor = grouping.groups[at(home)].anchor;
  if (target.isa == Isa::cuda) return anchor < 0 && accesses_are_aligned(graph, grouping, home);
  if (anchor >= 0 && divides_bytes(*graph.value(anchor))) return false;
  const bool wide = anchor >= 0 && bits(graph.value(anchor).type().dtype) == 64;  // as a tile's lanes are, then
  return vector_lanes(target, wide) % 8 == 0;
}

void keep_masks(const ir::Graph& graph, const Target& target, const std::vector<std::vector<int>>& users,
                GroupLinks& links, Grouping& grouping) {
  MaskKeeper(graph, target, users, links, grouping).run();
}

}  // namespace fusejit::scheduler
