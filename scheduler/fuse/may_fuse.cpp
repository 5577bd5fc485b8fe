#include "scheduler/fuse/may_fuse.h"

#include <algorithm>

#include "ir/base/check.h"
#include "scheduler/fuse/analysis.h"

namespace fusejit::scheduler {
namespace {

// Extents above 1 of the dims that a group's reductions keep.
std::vector<std::int64_t> kept_extents(const Group& group) {
  std::vector<std::int64_t> extents;
  for (int d = 0; d < group.domain.shape.rank(); ++d) {
    if (!group.reduced[static_cast<std::size_t>(d)] && group.domain.shape[d] != 1)
      extents.push_back(group.domain.shape[d]);
  }
  return extents;
}

std::vector<std::int64_t> extents_above_one(const Type& type) {
  std::vector<std::int64_t> extents;
  for (const std::int64_t extent : type.shape) {
    if (extent != 1) extents.push_back(extent);
  }
  return extents;
}

bool contains(const std::vector<int>& list, int node) {
  return std::find(list.begin(), list.end(), node) != list.end();
}

Verdict no(RefusalCode code, std::string why) { return {false, JoinAs::store, code, std::move(why)}; }

// True if an element of `reader` reads the element of `value` with the same index, dims of one element left out.
bool reads_own_element(const Access& access, const Type& reader, const Type& value) {
  std::vector<int> of_reader;
  for (int d = 0; d < reader.shape.rank(); ++d) {
    if (reader.shape[d] != 1) of_reader.push_back(d);
  }
  const std::vector<int> order = physical_order(value);
  std::vector<int> read(order.size());
  for (std::size_t p = 0; p < order.size(); ++p) read[static_cast<std::size_t>(order[p])] = plain_dim(access.index[p]);
  std::size_t next = 0;
  for (int d = 0; d < value.shape.rank(); ++d) {
    if (value.shape[d] == 1) continue;
    if (next == of_reader.size() || read[static_cast<std::size_t>(d)] != of_reader[next++]) return false;
  }
  return next == of_reader.size();
}

// The tile of an anchor sums over everything but the dim that its lanes run along.
bool suits_tile(const ir::Graph& graph, const Group& group, const std::vector<bool>& reduced) {
  const int lanes = lane_dim(*graph.value(group.anchor));
  for (int d = 0; d < group.domain.shape.rank(); ++d) {
    if (group.domain.shape[d] != 1 && reduced[static_cast<std::size_t>(d)] == (d == lanes)) return false;
  }
  return true;
}

}  // namespace

Verdict may_fuse(const ir::Graph& graph, const Grouping& grouping, int group_id, const Candidate& candidate) {
  const Group& group = grouping.groups[static_cast<std::size_t>(group_id)];
  const ir::Node& node = *graph.value(candidate.node);
  const ir::OpDef& row = ir::op_def(node.op);
  const std::string self = label(graph, candidate.node);
  if (row.is_contraction()) {
    return no(RefusalCode::anchor_operand, fmt::format("{} reads its operands many times from memory", self));
  }
  if (group.length + grouping.lengths[static_cast<std::size_t>(candidate.node)] > kMostLength) {
    return no(RefusalCode::too_long,
              fmt::format("with {} the kernel would compute more than {} values", self, kMostLength));
  }
  bool reads_class = false;  // reads a reduction or a final of this very group
  for (const Access& access : candidate.accesses) {
    if (grouping.group_of[static_cast<std::size_t>(access.node)] != group_id) continue;
    reads_class |= contains(group.reductions, access.node) || contains(group.finals, access.node);
  }
  const Type& domain = candidate.domain;
  if (reads_class) {
    const bool same_class = row.family != ir::Family::reduce && !group.reductions.empty() &&
                            extents_above_one(node.type) == kept_extents(group);
    if (!same_class) {
      return no(RefusalCode::reduction_barrier, fmt::format("{} {} needs the finished reduction over all of {}", self,
                                                            domain.str(), group.domain.str()));
    }
    for (const Access& access : candidate.accesses) {
      const bool inside = grouping.group_of[static_cast<std::size_t>(access.node)] == group_id;
      if (inside && !reads_own_element(access, node.type, graph.value(access.node).type())) {
        return no(RefusalCode::reduction_barrier,
                  fmt::format("{} reads other elements of the reduction than its own", self));
      }
      if (inside && contains(group.stores, access.node)) {
        return no(RefusalCode::reduction_barrier, fmt::format("{} reads all of {}", self, label(graph, access.node)));
      }
    }
    return {true, JoinAs::final, {}, ""};
  }
  // A tile stores its elements wherever they lie.
  const bool any_layout = group.anchor >= 0 && row.family != ir::Family::reduce;
  if (domain.shape != group.domain.shape || (domain.layout != group.domain.layout && !any_layout)) {
    return no(RefusalCode::different_space,
              fmt::format("{} runs over {}, the kernel over {}", self, domain.str(), group.domain.str()));
  }
  for (const Access& access : candidate.accesses) {
    if (grouping.group_of[static_cast<std::size_t>(access.node)] != group_id) continue;
    if (!is_element(group, access, graph.value(access.node).type())) {
      return no(RefusalCode::not_elementwise, fmt::format("{} reads other elements of {} than the one being computed",
                                                          self, label(graph, access.node)));
    }
  }
  if (row.family != ir::Family::reduce) return {true, JoinAs::store, {}, ""};
  const std::optional<std::vector<bool>> over = reduced_over(node, domain.shape);
  if (!over) return no(RefusalCode::different_space, fmt::format("{} reduces a part of the kernel's rows", self));
  const std::vector<bool>& reduced = *over;
  if (!group.reductions.empty() && reduced != group.reduced) {
    return no(RefusalCode::different_space, fmt::format("{} reduces other dims than the kernel does", self));
  }
  if (group.anchor >= 0 && !ir::op_def(graph.value(group.anchor)->op).packs_second) {
    return no(RefusalCode::different_space, fmt::format("{} would be summed over weights", self));
  }
  if (group.anchor >= 0 && is_batched(*graph.value(group.anchor))) {
    return no(RefusalCode::different_space, fmt::format("{} would be summed over the products of a batch", self));
  }
  if (group.anchor >= 0 && !suits_tile(graph, group, reduced)) {
    return no(RefusalCode::different_space, fmt::format("{} reduces along the lanes of the anchor's tile", self));
  }
  return {true, JoinAs::reduction, {}, ""};
}

}  // namespace fusejit::scheduler
