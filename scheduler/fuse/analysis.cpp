// What expressions read: the walk of lower/expression/expression.h with a load that only records.
#include "scheduler/fuse/analysis.h"

#include <algorithm>
#include <set>

#include "ir/base/check.h"
#include "scheduler/lower/expression/expression.h"

namespace fusejit::scheduler {

const Type& domain_of(const ir::Node& node) {
  return ir::op_def(node.op).family == ir::Family::reduce ? node.operands[0].value.type() : node.type;
}

int expression_of(const ir::Graph& graph, int node) {
  const ir::Value& value = graph.value(node);
  return ir::op_def(value->op).family == ir::Family::reduce ? graph.index_of(value->operands[0].value.get()) : node;
}

std::vector<bool> reduced_dims(const ir::Node& node) {
  std::vector<bool> reduced(static_cast<std::size_t>(node.operands[0].value.type().shape.rank()));
  for (std::size_t a = 0; a < node.attrs.size(); ++a) {
    const ir::AttrDef& attr = node.attrs.schema()[a];
    if (attr.name != "dim") continue;
    if (attr.kind == ir::AttrKind::dims) {
      for (const std::int64_t d : node.attrs[a].ints) reduced[static_cast<std::size_t>(d)] = true;
    } else {
      reduced[static_cast<std::size_t>(node.attrs[a].integer)] = true;
    }
  }
  return reduced;
}

std::optional<std::vector<bool>> reduced_over(const ir::Node& node, const Shape& domain) {
  const Shape& shape = node.operands[0].value.type().shape;
  const std::vector<bool> own = reduced_dims(node);
  if (shape == domain) return own;
  std::vector<bool> reduced(static_cast<std::size_t>(domain.rank()));
  int d = 0;
  for (int of_domain = 0; of_domain < domain.rank(); ++of_domain) {
    std::int64_t extent = 1;
    int taken = 0, summed = 0;
    for (; d < shape.rank() && (extent < domain[of_domain] || shape[d] == 1); ++d) {
      extent *= shape[d];
      if (shape[d] != 1) ++taken, summed += own[static_cast<std::size_t>(d)];
    }
    if (extent != domain[of_domain] || (summed != 0 && summed != taken)) return std::nullopt;
    if (summed == 0 && taken > 1) return std::nullopt;
    reduced[static_cast<std::size_t>(of_domain)] = summed > 0;
  }
  return reduced;
}

int under_views(const ir::Graph& graph, const std::vector<bool>& stored, int node) {
  while (!stored[static_cast<std::size_t>(node)] && ir::op_def(graph.value(node)->op).family == ir::Family::view)
    node = graph.operands(node)[0];
  return node;
}

bool is_batched(const ir::Node& node) {
  if (!ir::op_def(node.op).matrix) return false;
  const Shape& right = node.operands[1].value.type().shape;
  return std::any_of(right.begin(), right.end() - 2, [](std::int64_t extent) { return extent != 1; });
}

int lane_dim(const ir::Node& anchor) { return ir::op_def(anchor.op).matrix ? anchor.type.shape.rank() - 1 : 1; }

DType memory_dtype(const ir::Graph& graph, const Grouping& grouping, int node) {
  const bool as_bits = !grouping.as_bits.empty() && grouping.as_bits[static_cast<std::size_t>(node)];
  return as_bits ? DType::b1 : graph.value(node).type().dtype;
}

std::int64_t memory_bytes(const ir::Graph& graph, const Grouping& grouping, int node) {
  return bytes(memory_dtype(graph, grouping, node), graph.value(node).type().elements());
}

std::vector<int> groups_with(const Grouping& grouping, const std::vector<std::vector<int>>& users, int node) {
  std::vector<int> groups, open{node};
  std::set<int> seen{node};
  while (!open.empty()) {
    const auto v = static_cast<std::size_t>(open.back());
    open.pop_back();
    if (grouping.stored[v]) {
      const int group = grouping.group_of[v];
      if (group >= 0 && std::find(groups.begin(), groups.end(), group) == groups.end()) groups.push_back(group);
      continue;
    }
    for (const int user : users[v]) {
      if (seen.insert(user).second) open.push_back(user);
    }
  }
  return groups;
}

std::string label(const ir::Graph& graph, int node) {
  const auto parameters = static_cast<int>(graph.parameters().size());
  const ir::Node& n = *graph.value(node);
  return node < parameters ? "%" + graph.parameter_name(static_cast<std::size_t>(node))
                           : "%" + std::to_string(node - parameters) + " " + std::string(ir::name(n.op));
}

namespace {

using Found = std::function<void(int node, const std::vector<ir::Index>& physical)>;

// The point of the domain, its dims in another order.
LogicalIndex turned_point(const Type& domain, const std::vector<int>& turned) {
  const LogicalIndex point = point_of(domain, domain.shape);
  LogicalIndex in_order;
  for (const int d : turned) in_order.push_back(point[static_cast<std::size_t>(d)]);
  return in_order;
}

// Walks the node's expression over the domain; `found` hears of every load.
void walk_expression(const ir::Graph& graph, const std::vector<bool>& stored, int node, const Type& over_domain,
                     const std::vector<int>& turned, const Found& found,
                     const std::function<bool(const LogicalIndex&)>& follow) {
  const int root = expression_of(graph, node);
  ir::KernelBuilder scratch("analysis", Isa::any);  // written to, never finished
  ExpressionHooks hooks;
  hooks.is_stored = [&](int n) { return (n != node || n != root) && stored[static_cast<std::size_t>(n)]; };
  hooks.varies_by_lane = [](const ir::Index&) { return false; };
  hooks.resolve = [](const ir::Index& index) { return index; };
  hooks.load = [&](int n, const std::vector<ir::Index>& physical, bool) -> ir::Arg {
    found(n, physical);
    // A gathered index must be an SSA value; a load of anything gives one.
    const ir::MemId buffer = scratch.buffer(ir::MemKind::read, graph.value(n).type().dtype, {});
    return scratch.load(buffer, {});
  };
  hooks.follow = follow;
  const auto over = [&](const Type& domain, const Shape& shape, int expression) {
    hooks.ranges = [&domain](const ir::IndexAtom& atom) -> std::optional<ir::Interval> {
      const int d = atom.kind == ir::AtomKind::variable ? atom.id - kPlaceholder : -1;
      if (d < 0) return std::nullopt;
      return ir::Interval{0, domain.shape[d] - 1};
    };
    Expression(graph, scratch, hooks)
        .value(expression, turned.empty() ? point_of(domain, shape) : turned_point(domain, turned));
  };
  if (!ir::op_def(graph.value(node)->op).is_contraction())
    return over(over_domain, domain_of(*graph.value(node)).shape, root);
  for (const ir::Operand& operand : graph.value(node)->operands) {
    if (operand.is_number()) continue;
    const Type& type = operand.value.type();
    over(type, type.shape, graph.index_of(operand.value.get()));
  }
}

}  // namespace

std::vector<Access> accesses_of(const ir::Graph& graph, const std::vector<bool>& stored, int node, const Type& domain,
                                const std::vector<int>& turned) {
  // A tile reads its operands whole, many times each: none of these is an element of the domain.
  const bool whole = ir::op_def(graph.value(node)->op).is_contraction();
  std::vector<Access> accesses;
  const auto found = [&](int n, const std::vector<ir::Index>& physical) {
    Access access{n, physical, physical_dims(graph.value(n).type()), whole};
    if (std::find(accesses.begin(), accesses.end(), access) == accesses.end()) accesses.push_back(std::move(access));
  };
  walk_expression(graph, stored, node, domain, turned, found, {});
  return accesses;
}

const std::vector<int>& turned_in(const Group& group, int node) {
  static const std::vector<int>& same = *new std::vector<int>;
  const auto found = group.turned.find(node);
  return found == group.turned.end() ? same : found->second;
}

std::vector<int> order_of_dims(const ir::Graph& graph, const Grouping& grouping, int group, int node) {
  const auto at = [](int i) { return static_cast<std::size_t>(i); };
  const Group& to = grouping.groups[at(group)];
  const Shape &shape = graph.value(node).type().shape, &domain = to.domain.shape;
  std::vector<int> order(at(shape.rank()), -1);
  for (const Access& access : grouping.accesses[at(node)]) {
    if (grouping.group_of[at(access.node)] != group) continue;
    const Type& read = graph.value(access.node).type();
    const std::vector<int>& turned = turned_in(to, access.node);
    if (access.whole || (turned.empty() && read.shape != domain)) return {};
    const std::vector<int> lies = physical_order(read);
    for (std::size_t p = 0; p < lies.size(); ++p) {
      const int d = plain_dim(access.index[p]), of_domain = turned.empty() ? lies[p] : turned[at(lies[p])];
      if (domain[of_domain] == 1) continue;
      if (d < 0 || shape[d] != domain[of_domain] || (order[at(d)] >= 0 && order[at(d)] != of_domain)) return {};
      order[at(d)] = of_domain;
    }
  }
  for (int of_domain = 0; of_domain < domain.rank(); ++of_domain) {  // dims of one element in any order
    if (domain[of_domain] != 1 && std::count(order.begin(), order.end(), of_domain) != 1) return {};
    if (domain[of_domain] == 1) *std::find(order.begin(), order.end(), -1) = of_domain;
  }
  return order;
}

Type seen_in(const Group& group, int node, const Type& value) {
  return group.turned.contains(node) ? value : seen_over(group.domain, value);
}

LogicalIndex point_in(const Group& group, int node, const Type& value) {
  const std::vector<int>& turned = turned_in(group, node);
  return turned.empty() ? point_of(group.domain, seen_over(group.domain, value).shape)
                        : turned_point(group.domain, turned);
}

bool is_element(const Group& group, const Access& access, const Type& value) {
  if (!group.turned.contains(access.node)) return is_identity(access, group.domain, value);
  const LogicalIndex point = point_in(group, access.node, value);
  const std::vector<int> order = physical_order(value);
  for (std::size_t p = 0; p < order.size(); ++p)
    if (access.whole || !(access.index[p] == point[static_cast<std::size_t>(order[p])])) return false;
  return true;
}

bool keeps_indices_short(const ir::Graph& graph, const std::vector<bool>& stored, int node, int most) {
  bool all_short = true;
  const auto follow = [&](const LogicalIndex& at) {
    for (const ir::Index& index : at) all_short = all_short && index.atoms() <= most;
    return all_short;
  };
  walk_expression(
      graph, stored, node, domain_of(*graph.value(node)), {}, [](int, const std::vector<ir::Index>&) {}, follow);
  return all_short;
}

std::vector<std::vector<int>> users_of_nodes(const ir::Graph& graph) {
  std::vector<std::vector<int>> users(static_cast<std::size_t>(graph.value_count()));
  for (int v = 0; v < graph.value_count(); ++v) {
    for (const int operand : graph.operands(v)) {
      if (operand >= 0) users[static_cast<std::size_t>(operand)].push_back(v);
    }
  }
  return users;
}

bool is_result(const ir::Graph& graph, int node) {
  return std::find(graph.results().begin(), graph.results().end(), graph.value(node)) != graph.results().end();
}

}  // namespace fusejit::scheduler
