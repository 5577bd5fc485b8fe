#include "scheduler/recompute/activations.h"

#include <algorithm>
#include <span>

#include "ir/base/at.h"
#include "ir/contraction.h"
#include "ir/ops/rows.h"
#include "ir/passes/recompute.h"
#include "scheduler/fuse/analysis.h"

namespace fusejit::scheduler {
namespace {

// FLOP of a contraction in the time that a byte moves: two cores of Zen 5 and of Sapphire Rapids have 10 to 14, an H100
// without tensor cores 20.
constexpr double kFlopPerByte = 12;
// What is smaller than this part of all that is alive is not worth a kernel.
constexpr std::int64_t kLeastPart = 2000;

// Of the node's own work: bytes that could move in the time of its products.
double cost_of_products(const ir::Node& node) {
  double flop = 0;
  if (ir::op_def(node.op).is_contraction())
    for (const ir::Contraction& one : ir::contractions_of(node))
      flop += 2.0 * static_cast<double>(one.outputs()) * static_cast<double>(one.terms());
  return flop / kFlopPerByte;
}

}  // namespace

Activations::Activations(const ir::Graph& graph, const Target& target, const Grouping& grouping)
    : graph_(graph), stored_(grouping.stored) {
  const int values = graph.value_count(), groups = static_cast<int>(grouping.groups.size());
  const auto is_temporary = [&](int v) { return grouping.group_of[at(v)] >= 0; };
  std::vector<bool> is_result(at(values));
  for (const ir::Value& result : graph.results()) is_result[at(graph.index_of(result.get()))] = true;

  // The forward pass ends with the group that stores the first result, a step's loss.
  const int loss = graph.index_of(graph.results()[0].get());
  const int end = is_temporary(loss) ? grouping.group_of[at(loss)] : groups;
  std::vector<ir::Value> made_early;
  for (int v = 0; v < values; ++v)
    if (is_temporary(v) && grouping.group_of[at(v)] <= end) made_early.push_back(graph.value(v));
  for (const ir::Value& value : ir::needed_values(made_early)) early_.insert(value.get());

  std::vector<int> number(at(values), -1), last_read(at(values), -1);  // by groups other than that which stores it
  others_.assign(at(groups) + 1, 0);
  for (int v = 0; v < values; ++v) {
    if (!is_temporary(v)) continue;
    const int group = grouping.group_of[at(v)];
    const ir::Node& node = *graph.value(v);
    double cost = static_cast<double>(memory_bytes(graph, grouping, v)) + cost_of_products(node);
    if (ir::op_def(node.op).packs_second && target.isa != Isa::cuda) {  // the weights, laid out as tiles read them
      const std::int64_t packed = node.operands[1].value.type().bytes();
      others_[at(group)] += packed, others_[at(group) + 1] -= packed;
    }
    const bool is_early = group <= end;
    if (is_early) {
      number[at(v)] = static_cast<int>(list_.size());
      Activation& activation = list_.emplace_back();
      activation.node = v, activation.made = activation.last_early = group;
    }
    for (const Access& access : grouping.accesses[at(v)]) {
      if (grouping.group_of[at(access.node)] == group) {
        if (number[at(access.node)] >= 0) list_.back().operands.push_back(number[at(access.node)]);
        continue;
      }
      cost += static_cast<double>(memory_bytes(graph, grouping, access.node));
      last_read[at(access.node)] = std::max(last_read[at(access.node)], group);
      const int read = number[at(access.node)];
      if (read < 0) continue;
      Activation& activation = list_[at(read)];
      if (is_early) {
        activation.last_early = std::max(activation.last_early, group);
        list_.back().operands.push_back(read);
      } else {
        activation.first_late = std::min(activation.first_late, group);
        activation.last_late = std::max(activation.last_late, group);
      }
    }
    cost_ += cost;
    if (is_early) list_.back().cost = cost;
  }
  for (int v = 0; v < values; ++v) {  // what only its own group reads is never in memory
    if (!is_temporary(v) || last_read[at(v)] < 0 || is_result[at(v)]) continue;
    const std::int64_t bytes = memory_bytes(graph, grouping, v);
    if (number[at(v)] >= 0) {
      list_[at(number[at(v)])].bytes = bytes;
    } else {
      others_[at(grouping.group_of[at(v)])] += bytes, others_[at(last_read[at(v)]) + 1] -= bytes;
    }
  }
  std::int64_t all = 0;
  for (const Activation& activation : list_) all += activation.bytes;
  for (Activation& activation : list_) {
    activation.can_be_dropped = activation.bytes * kLeastPart > all && !is_result[at(activation.node)] &&
                                !grouping.as_bits[at(activation.node)];
  }
}

std::vector<std::int64_t> Activations::alive(const std::vector<bool>& dropped) const {
  std::vector<std::int64_t> change = others_;
  const auto live = [&](int first, int last, std::int64_t bytes) {
    change[at(first)] += bytes, change[at(last) + 1] -= bytes;
  };
  struct Late {
    int first, last;
  };
  std::vector<Late> late;
  late.reserve(list_.size());
  for (const Activation& activation : list_) late.push_back({activation.first_late, activation.last_late});
  for (std::size_t i = list_.size(); i-- > 0;) {
    const Activation& activation = list_[i];
    const Late read = late[i];
    const bool is_read = read.first != Activation::kNever;
    if (!is_read || !dropped[i]) {
      live(activation.made, std::max(activation.last_early, read.last), activation.bytes);
      continue;
    }
    live(activation.made, activation.last_early, activation.bytes);
    live(read.first, read.last, activation.bytes);
    for (const int operand : activation.operands) {
      late[at(operand)].first = std::min(late[at(operand)].first, read.first);
      late[at(operand)].last = std::max(late[at(operand)].last, read.first);
    }
  }
  std::int64_t sum = 0;
  for (std::int64_t& bytes : change) sum += bytes, bytes = sum;
  return change;
}

std::int64_t Activations::peak(const std::vector<bool>& dropped) const {
  const std::vector<std::int64_t> bytes = alive(dropped);
  return *std::max_element(bytes.begin(), bytes.end());
}

double Activations::extra_time(const std::vector<bool>& dropped) const {
  double cost = 0;
  for (std::size_t i = 0; i < list_.size(); ++i)
    if (dropped[i]) cost += list_[i].cost;
  return cost / cost_;
}

ir::Graph Activations::without(const std::vector<bool>& dropped) const {
  std::unordered_set<const ir::Node*> gone;
  for (std::size_t i = 0; i < list_.size(); ++i)
    if (dropped[i]) gone.insert(graph_.value(list_[i].node).get());
  ir::LateReads reads;
  reads.region = ir::fresh_region(graph_.results());
  reads.early = early_;
  reads.stays = [&](const ir::Node& node) { return stored_[at(graph_.index_of(&node))]; };
  reads.again = [&](const ir::Node& node, const auto& operands) {
    if (!gone.contains(&node)) return ir::Value();
    const ir::OriginScope scope(node);
    return ir::build_in(node.type.layout, node.op, operands(), node.attrs, reads.region);
  };
  return ir::with_late_reads(graph_, reads);
}

}  // namespace fusejit::scheduler
