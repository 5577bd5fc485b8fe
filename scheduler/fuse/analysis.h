// What the nodes of a graph are to groups: the domain they are computed over, what their expressions read.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "scheduler/fuse/group.h"

namespace fusejit::scheduler {

// What a node's expression reads when computed over `domain`, its own or one that a reshape makes of it, given what is
// stored: one entry per distinct access. `turned`: or one whose dims these are, in another order (Group::turned).
std::vector<Access> accesses_of(const ir::Graph& graph, const std::vector<bool>& stored, int node, const Type& domain,
                                const std::vector<int>& turned = {});
// By dim of a value of the domain's elements: which of the domain's it is; empty: the same, or what a reshape makes of
// them.
const std::vector<int>& turned_in(const Group& group, int node);
// By dim of a value that would be computed in the group: the dim of the domain whose elements it names, as every value
// of the group that it reads says; empty: none does, or it is not so simple.
std::vector<int> order_of_dims(const ir::Graph& graph, const Grouping& grouping, int group, int node);
// What the group takes such a value for, and where in that the element is that is being computed.
Type seen_in(const Group& group, int node, const Type& value);
std::vector<ir::Index> point_in(const Group& group, int node, const Type& value);
// The access touches exactly that element.
bool is_element(const Group& group, const Access& access, const Type& value);
// False if views make an index of more than `most` atoms on the way from the node to what is stored.
bool keeps_indices_short(const ir::Graph& graph, const std::vector<bool>& stored, int node, int most);
// Domain that a stored node is computed over: the operand of a reduction, else its own type.
const Type& domain_of(const ir::Node& node);
// The expressions to evaluate over the domain: the node itself, or the operand of a reduction.
int expression_of(const ir::Graph& graph, int node);
// By dim of its operand: reduced by this reduce node.
std::vector<bool> reduced_dims(const ir::Node& node);
// The same by dim of a domain that a reshape makes of the operand's: nothing where some dims that are one there are
// reduced and some are kept, or where several are kept, so that the result has other dims than the domain keeps.
std::optional<std::vector<bool>> reduced_over(const ir::Node& node, const Shape& domain);
// The value under the views of it that are not stored.
int under_views(const ir::Graph& graph, const std::vector<bool>& stored, int node);
// A matrix product whose right-hand side has more than one matrix.
bool is_batched(const ir::Node& node);
// The dim of an anchor's result that the lanes of its tile run along.
int lane_dim(const ir::Node& anchor);
// What the elements of a value are in memory, and how many bytes all of them.
DType memory_dtype(const ir::Graph& graph, const Grouping& grouping, int node);
std::int64_t memory_bytes(const ir::Graph& graph, const Grouping& grouping, int node);
// By node: who reads it, once for each operand that it is.
std::vector<std::vector<int>> users_of_nodes(const ir::Graph& graph);
bool is_result(const ir::Graph& graph, int node);
// Groups that compute `node`: its own, or those of the stored values whose expressions hold it. `users`: by node.
std::vector<int> groups_with(const Grouping& grouping, const std::vector<std::vector<int>>& users, int node);
// "%3 conv2d"
std::string label(const ir::Graph& graph, int node);

}  // namespace fusejit::scheduler
