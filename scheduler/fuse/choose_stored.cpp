// Which values are kept in memory. Everything else is computed again wherever it is used (R1, R8, R10).
//
// Stored are results, anchors, reductions, operands that an anchor reads many times, per-channel and scalar work that a
// larger space uses (it would be repeated for every element), what several gathers read, and whatever moves fewer bytes
// stored than recomputed.
#include "scheduler/fuse/choose_stored.h"

#include <algorithm>
#include <set>

#include "ir/base/at.h"
#include "ir/base/check.h"
#include "ir/contraction.h"
#include "ir/ops/geometry/span.h"
#include "scheduler/choose/choose.h"
#include "scheduler/choose/tuning.h"
#include "scheduler/fuse/analysis.h"
#include "scheduler/library.h"

namespace fusejit::scheduler {
namespace {

struct Cost {
  std::set<int> leaves;  // stored values that the expression reads
  int ops = 0;           // element-wise definitions
  int length = 0;        // nodes, views too
  int views = 0;         // of the longest way through them
};

class Chooser {
 public:
  Chooser(const ir::Graph& graph, const Target& target, const std::vector<bool>& alone, const Rules& rules,
          Grouping& grouping)
      : graph_(graph),
        target_(target),
        rules_(rules),
        homes_(grouping.homes),
        refusals_(grouping.refusals),
        stored_(static_cast<std::size_t>(graph.value_count())),
        is_result_(stored_.size()),
        costs_(stored_.size()),
        users_(stored_.size()) {
    std::copy(alone.begin(), alone.end(), stored_.begin());
    for (std::size_t v = 0; v < grouping.homes.size(); ++v)
      if (grouping.homes[v].root >= 0) stored_[v] = true;
    for (const CallResult& asked : grouping.call_results) {
      stored_[at(asked.result)] = true;
      if (asked.mask >= 0) stored_[at(asked.mask)] = true;
    }
  }

  void run(Grouping& grouping) {
    const auto parameters = static_cast<int>(graph_.parameters().size());
    for (int v = 0; v < parameters; ++v) stored_[at(v)] = true;
    for (const ir::Value& result : graph_.results()) {
      store(graph_.index_of(result.get()));
      is_result_[at(graph_.index_of(result.get()))] = true;
    }
    for (int v = parameters; v < graph_.value_count(); ++v) {
      const ir::Node& node = *graph_.value(v);
      for (const int operand : graph_.operands(v)) {
        if (operand >= 0) users_[at(operand)].push_back(v);
      }
      const ir::OpDef& row = ir::op_def(node.op);
      if (row.family == ir::Family::anchor || row.family == ir::Family::reduce || node.op == ir::Op::constant) store(v);
    }
    for (int v = parameters; v < graph_.value_count(); ++v) visit(v);
    grouping.stored = std::move(stored_);
    for (const Cost& cost : costs_) grouping.lengths.push_back(cost.length);
  }

 private:
  void store(int v) { stored_[at(v)] = true; }
  static bool is_view(const ir::Node& node) { return ir::op_def(node.op).family == ir::Family::view; }
  // Terms that are added up for an element: what each has to be compared with.
  static std::int64_t terms(const ir::Node& node) {
    if (node.op != ir::Op::gather_grad) return 0;
    const std::int64_t extent = node.operands[0].value.type().shape[static_cast<int>(node.attrs.integer("dim"))];
    return extent > 1 ? std::min<std::int64_t>(extent, tuning::kMostOps) : 0;
  }
  void refuse(RefusalCode code, int producer, int consumer, const std::string& sentence) {
    refusals_.push_back({producer,
                         consumer,
                         {code, label(graph_, producer), label(graph_, consumer), sentence,
                          2 * graph_.value(producer).type().bytes()}});
  }

  void visit(int v) {
    const ir::Node& node = *graph_.value(v);
    const ir::OpDef& row = ir::op_def(node.op);
    for (std::size_t i = 0; i < node.operands.size(); ++i) {
      if (!node.operands[i].is_number()) check_operand(v, row, i);
    }
    end_views(v, node, row);
    count(v);
    if (!stored_[at(v)]) weigh(v, node, costs_[at(v)]);
  }

  void count(int v) {
    const ir::Node& node = *graph_.value(v);
    const ir::OpDef& row = ir::op_def(node.op);
    Cost& cost = costs_[at(v)] = {};
    for (const int operand : graph_.operands(v)) {
      if (operand < 0) continue;
      if (stored_[at(operand)]) {
        cost.leaves.insert(operand);
      } else {
        cost.ops += costs_[at(operand)].ops, cost.length += costs_[at(operand)].length;
        cost.leaves.insert(costs_[at(operand)].leaves.begin(), costs_[at(operand)].leaves.end());
        cost.views = std::max(cost.views, costs_[at(operand)].views);
      }
    }
    cost.views += is_view(node);
    const bool copies = is_view(node) || row.family == ir::Family::source;
    cost.ops += copies && node.op != ir::Op::rand ? static_cast<int>(terms(node)) : row.cost;
    ++cost.length;
  }

  // Stores what is under the views, which are then views of that alone.
  void store_under(int v) {
    if (stored_[at(v)]) return;
    if (!is_view(*graph_.value(v))) return store(v);
    store_under(graph_.operands(v)[0]);
    count(v);
  }

  // Stores the operand if this user cannot take its expression.
  void check_operand(int v, const ir::OpDef& row, std::size_t i) {
    const int operand = graph_.operands(v)[i];
    if (stored_[at(operand)]) return;
    if (runs_in_library(graph_, target_, v)) return store(operand);
    if (row.op == ir::Op::gather && i == 0 && is_work_for_many_gathers(operand)) return store(operand);
    const int under = under_views(graph_, stored_, operand);
    if (stored_[at(under)]) {
      // Views of stored values are read in place, except where an image is read by a tile.
      if (row.is_contraction() && i == 0 && !row.matrix) store(operand);
      return;
    }
    if (row.is_contraction()) {
      const bool packed = i == 1 && row.packs_second;  // its expression runs once, while it is packed
      // Other dims than the matrix's, a flattened image mostly, cost more to gather than a kernel that stores it.
      const bool same_dims = graph_.value(under).type().shape.rank() == graph_.value(operand).type().shape.rank();
      const bool computed = (!row.matrix || same_dims) && in_prologue(v, i, operand);
      if (!packed && !computed) {
        // A matrix is read through views; what is under them is stored once.
        const int kept = row.matrix ? under : operand;
        store(kept);
        refuse(RefusalCode::anchor_operand, kept, v,
               fmt::format("{} reads this operand many times, so it is computed once and stored", row.name));
      }
      return;
    }
    if (windows_overlap(*graph_.value(v)) && ends_an_anchor(operand)) return store(operand);
    const std::int64_t small = graph_.value(under).type().elements(), large = graph_.value(v).type().elements();
    if (costs_[at(under)].ops > 0 && small * 2 <= large && !is_cheap_per_element(under, v)) store_under(operand);  // R3
  }

  // Each element is read by several windows, and would be computed for each.
  static bool windows_overlap(const ir::Node& node) {
    if (node.op != ir::Op::max_pool2d && node.op != ir::Op::avg_pool2d) return false;
    return ir::pool_window(node, 0).most_windows() > 1 || ir::pool_window(node, 1).most_windows() > 1;
  }
  // An anchor's kernel may store this in place of its result, which nobody else reads: as many bytes.
  bool ends_an_anchor(int v) const {
    const Cost& cost = costs_[at(v)];
    if (cost.ops == 0 || users_[at(v)].size() != 1) return false;
    const ir::Node& node = *graph_.value(v);
    int anchors = 0;
    for (const int leaf : cost.leaves) {
      const ir::Node& of_leaf = *graph_.value(leaf);
      if (of_leaf.type.elements() * 2 <= node.type.elements()) continue;
      if (!ir::op_def(of_leaf.op).is_contraction() || runs_in_library(graph_, target_, leaf) ||
          of_leaf.type.shape != node.type.shape || of_leaf.type.dtype != node.type.dtype || is_result_[at(leaf)] ||
          users_[at(leaf)].size() != 1 || is_needed_before(leaf, cost.leaves))
        return false;
      ++anchors;
    }
    return anchors == 1;
  }

  // Work on arguments alone that may be done once per element of a larger space, so that no kernel of its own does it.
  // Work on a finished reduction has the reduction's kernel to be done in. Engines that cuDNN compiles take vectors.
  bool is_cheap_per_element(int v, int user) const {
    if (target_.cudnn == CudnnMode::compiled && follows_call(user)) return false;
    const Cost& cost = costs_[at(v)];
    const auto parameters = static_cast<int>(graph_.parameters().size());
    const int most = target_.isa == Isa::cuda ? tuning::kMostRepeatedOps : tuning::kMostOpsPerElement;
    return rules_.has(Rule::chain) && cost.ops <= most &&
           std::all_of(cost.leaves.begin(), cost.leaves.end(), [&](int leaf) { return leaf < parameters; });
  }

  // True if this is computed from a convolution of the library, which nothing else that it is computed from needs
  // before: the call may take it along.
  bool follows_call(int v) const {
    std::set<int> leaves;
    for (const int operand : graph_.operands(v)) {
      if (operand < 0) continue;
      if (stored_[at(operand)]) {
        leaves.insert(operand);
      } else {
        leaves.insert(costs_[at(operand)].leaves.begin(), costs_[at(operand)].leaves.end());
      }
    }
    return std::any_of(leaves.begin(), leaves.end(), [&](int leaf) {
      return ir::op_def(graph_.value(leaf)->op).is_contraction() && runs_in_library(graph_, target_, leaf) &&
             !is_needed_before(leaf, leaves);
    });
  }

  // Each gather would find an element at a place of its own, and compute it there.
  bool is_work_for_many_gathers(int operand) const {
    const std::vector<int>& users = users_[at(operand)];
    const auto reads = [&](int user) {
      return graph_.value(user)->op == ir::Op::gather && graph_.operands(user)[0] == operand;
    };
    if (std::count_if(users.begin(), users.end(), reads) < 2) return false;
    bool gathers = false;
    for (int v = operand; !stored_[at(v)] && is_view(*graph_.value(v)); v = graph_.operands(v)[0])
      gathers |= graph_.operands(v).size() > 1 && graph_.value(v)->op != ir::Op::concat;
    return gathers || costs_[at(operand)].ops > tuning::kMostRepeatedOps;
  }

  // R6: the anchor computes the operand while it copies it to a panel. That moves fewer bytes where no kernel could
  // have stored it while it computes what the operand comes from: all of that is from outside, or is needed as a whole
  // before, as by the sums of a normalisation. Every copy counts.
  bool in_prologue(int anchor, std::size_t i, int operand) const {
    const Cost& cost = costs_[at(operand)];
    const Type& type = graph_.value(operand).type();
    if (cost.ops > tuning::kMostPrologueOps || !rules_.has(Rule::prologue)) return false;
    bool any = false, from_outside = true;
    for (const int leaf : cost.leaves) {
      if (graph_.value(leaf).type().elements() * 2 <= type.elements()) continue;
      from_outside = from_outside && leaf < static_cast<int>(graph_.parameters().size());
      if (!is_needed_before(leaf, cost.leaves)) return false;
      any = true;
    }
    std::int64_t users = 0;
    for (const int user : users_[at(operand)]) users += copies_of(user);
    const std::int64_t read = leaf_bytes(cost), once = read + (1 + users) * type.bytes();
    return any && users * read < once && takes_prologue(*graph_.value(anchor), i, target_, from_outside);
  }
  // How often it copies an operand: each phase of a strided gradient does.
  std::int64_t copies_of(int user) const {
    const ir::Node& node = *graph_.value(user);
    if (node.op != ir::Op::conv2d_input_grad) return 1;
    const std::vector<ir::Contraction> phases = ir::contractions_of(node);
    return std::max<std::int64_t>(
        1, std::count_if(phases.begin(), phases.end(), [](const ir::Contraction& phase) { return phase.terms() > 0; }));
  }
  // The value comes from outside, or others of these are computed from it, or it is computed again, as it is for those
  // who read it in the backward pass.
  bool is_needed_before(int value, const std::set<int>& leaves) const {
    if (value < static_cast<int>(graph_.parameters().size()) || graph_.value(value)->region > 0) return true;
    if (!homes_.empty() && homes_[at(value)].is_whole) return true;  // no kernel has all of its elements
    std::set<int> seen;
    std::vector<int> open(leaves.upper_bound(value), leaves.end());
    while (!open.empty() && seen.size() < tuning::kMostLookedAt) {
      const int v = open.back();
      open.pop_back();
      if (v == value) return true;
      if (v < value || !seen.insert(v).second) continue;
      for (const int operand : graph_.operands(v))
        if (operand >= 0) open.push_back(operand);
    }
    return false;
  }

  // Stores operands whose views go on for too long.
  void end_views(int v, const ir::Node& node, const ir::OpDef& row) {
    if (row.family == ir::Family::elementwise || row.family == ir::Family::reduce) return;  // the index stays
    int views = is_view(node);
    for (const int operand : graph_.operands(v)) {
      if (operand >= 0 && !stored_[at(operand)]) views = std::max(views, costs_[at(operand)].views + is_view(node));
    }
    if (views < 2 && (row.family == ir::Family::view || views == 0)) return;
    const int most = row.is_contraction() ? tuning::kMostAtomsInTile : tuning::kMostAtoms;
    if (views <= tuning::kMostViews && keeps_indices_short(graph_, stored_, v, most)) return;
    for (const int operand : graph_.operands(v)) {
      if (operand >= 0 && costs_[at(operand)].views > 0) store(operand);
    }
  }

  std::int64_t leaf_bytes(const Cost& cost) const {
    std::int64_t bytes = 0;
    for (const int leaf : cost.leaves) bytes += graph_.value(leaf).type().bytes();
    return bytes;
  }

  void weigh(int v, const ir::Node& node, const Cost& cost) {
    const auto users = static_cast<std::int64_t>(users_[at(v)].size());
    if (!rules_.has(Rule::chain) && cost.ops > 0 && !is_view(node)) return store(v);
    if (cost.ops > tuning::kMostOps || cost.length > kMostLength / 2 ||
        (users > 1 && cost.ops > tuning::kMostRepeatedOps && (!is_view(node) || terms(node) > 0))) {
      store(v);
      if (users > 1) {
        refuse(RefusalCode::cheaper_stored, v, users_[at(v)][1],
               fmt::format("{} operations would be computed again for each of {} users", cost.ops, users));
      }
      return;
    }
    if (users <= 1 || is_view(node)) return;
    const std::int64_t read = leaf_bytes(cost), again = users * read, once = read + (1 + users) * node.type.bytes();
    if (once < again) {
      store(v);
      refuse(RefusalCode::cheaper_stored, v, users_[at(v)][1],
             fmt::format("computing it for each of {} users reads {} bytes, storing it moves {}", users, again, once));
    }
  }

  const ir::Graph& graph_;
  const Target& target_;
  const Rules rules_;
  const std::vector<Home>& homes_;  // by node; empty: none
  std::vector<Refused>& refusals_;
  std::vector<bool> stored_, is_result_;
  std::vector<Cost> costs_;
  std::vector<std::vector<int>> users_;
};

}  // namespace

void choose_stored(const ir::Graph& graph, const Target& target, const std::vector<bool>& alone, const Rules& rules,
                   Grouping& grouping) {
  Chooser(graph, target, alone, rules, grouping).run(grouping);
}

}  // namespace fusejit::scheduler
