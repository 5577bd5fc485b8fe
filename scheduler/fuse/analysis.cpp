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

// Walks the node's expression over the domain; `found` hears of every load.
void walk_expression(const ir::Graph& graph, const std::vector<bool>& stored, int node, const Type& over_domain,
                     const Found& found, const std::function<bool(const LogicalIndex&)>& follow) {
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
    Expression(graph, scratch, hooks).value(expression, point_of(domain, shape));
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

std::vector<Access> accesses_of(const ir::Graph& graph, const std::vector<bool>& stored, int node, const Type& domain) {
  // A tile reads its operands whole, many times each: none of these is an element of the domain.
  const bool whole = ir::op_def(graph.value(node)->op).is_contraction();
  std::vector<Access> accesses;
  const auto found = [&](int n, const std::vector<ir::Index>& physical) {
    Access access{n, physical, physical_dims(graph.value(n).type()), whole};
    if (std::find(accesses.begin(), accesses.end(), access) == accesses.end()) accesses.push_back(std::move(access));
  };
  walk_expression(graph, stored, node, domain, found, {});
  return accesses;
}

bool keeps_indices_short(const ir::Graph& graph, const std::vector<bool>& stored, int node, int most) {
  bool all_short = true;
  const auto follow = [&](const LogicalIndex& at) {
    for (const ir::Index& index : at) all_short = all_short && index.atoms() <= most;
    return all_short;
  };
  walk_expression(
      graph, stored, node, domain_of(*graph.value(node)), [](int, const std::vector<ir::Index>&) {}, follow);
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
