#include "scheduler/fuse/gradients.h"

#include <algorithm>
#include <iterator>

#include "ir/base/at.h"
#include "scheduler/choose/choose.h"
#include "scheduler/choose/tuning.h"
#include "scheduler/fuse/analysis.h"

namespace fusejit::scheduler {

bool go_over_same_rows(const ir::Graph& graph, int by_input, int by_weights) {
  if (by_input < 0 || by_weights < 0) return false;
  const ir::Node &one = *graph.value(by_input), &other = *graph.value(by_weights);
  if (one.op != ir::Op::conv2d_input_grad || other.op != ir::Op::conv2d_weight_grad) return false;
  const ir::Value& gradient = one.operands[0].value;
  if (gradient != other.operands[1].value || gradient.type().dtype != DType::f32) return false;
  const Shape &weights = other.type.shape, &in = one.type.shape, &out = gradient.type().shape;
  const std::int64_t groups = other.attrs.integer("groups");
  if (one.operands[1].value.type().shape != weights || one.attrs.integer("groups") != groups) return false;
  return groups == 1 ? weights[2] * weights[3] == 1 : groups == in[1] && groups == out[1];
}

bool joins_gradients(const Rules& rules, const Target& target) {
  return rules.has(Rule::shared) && rules.has(Rule::epilogue) && target.isa != Isa::cuda;
}

bool gradients_meet(const ir::Graph& graph, const Target& target, int by_input, int by_weights) {
  if (!go_over_same_rows(graph, by_input, by_weights)) return false;
  const ir::Node& node = *graph.value(by_weights);
  if (node.attrs.integer("groups") > 1) return true;
  return tasks_of_both_gradients(graph.value(by_input).type().shape[0], target) > 0 &&
         2 * node.type.bytes() <= target.l2_bytes / tuning::kWeightsOfBothGradients;
}

bool is_much_of(std::int64_t saved, std::int64_t moved, const Target& target) {
  return saved * tuning::kSavedByBothGradients >= moved && saved >= tuning::kSavedOfL2 * target.l2_bytes;
}

namespace {

// Rows of all images that such an input gradient goes over at least, each of some groups where there are any.
std::int64_t rounds_of_gradients(const ir::Graph& graph, const Target& target, int by_input) {
  const Shape& gradient = graph.value(by_input)->operands[0].value.type().shape;
  const std::int64_t groups = graph.value(by_input)->attrs.integer("groups");
  return gradient[0] * gradient[2] *
         std::max<std::int64_t>(1, groups / (tuning::kMostVectorsOfGroups * target.lanes32()));
}

// Of what others store; in order, each once.
std::vector<int> read_in(const Grouping& grouping, int g) {
  const Group& group = grouping.groups[at(g)];
  std::vector<int> read;
  for (const auto* list : {&group.stores, &group.inner, &group.reductions, &group.finals, &group.copies})
    for (const int node : *list)
      for (const Access& access : grouping.accesses[at(node)])
        if (grouping.group_of[at(access.node)] != g) read.push_back(access.node);
  std::sort(read.begin(), read.end());
  read.erase(std::unique(read.begin(), read.end()), read.end());
  return read;
}

std::int64_t bytes_of(const ir::Graph& graph, const Grouping& grouping, const std::vector<int>& values) {
  std::int64_t bytes = 0;
  for (const int v : values) bytes += memory_bytes(graph, grouping, v);
  return bytes;
}

}  // namespace

std::int64_t bytes_both_read(const ir::Graph& graph, const Grouping& grouping, int g, int other) {
  const std::vector<int> mine = read_in(grouping, g), its = read_in(grouping, other);
  std::vector<int> both;
  std::set_intersection(mine.begin(), mine.end(), its.begin(), its.end(), std::back_inserter(both));
  return bytes_of(graph, grouping, both);
}

bool gradients_share_much(const ir::Graph& graph, const Target& target, const Grouping& grouping, int by_input,
                          int by_weights) {
  std::int64_t moved = 0;
  for (const int g : {by_input, by_weights})
    moved += bytes_of(graph, grouping, read_in(grouping, g)) + bytes_of(graph, grouping, grouping.groups[at(g)].stores);
  const std::int64_t saved = bytes_both_read(graph, grouping, by_input, by_weights),
                     rounds = rounds_of_gradients(graph, target, grouping.groups[at(by_input)].anchor);
  return is_much_of(saved, moved, target) && (moved - saved) / rounds <= bytes_of_round(target);
}

}  // namespace fusejit::scheduler
