// What every Graph obeys, whatever pass made it:
//   G1 order      operands of a node are parameters or earlier nodes of the graph
//   G2 reached    every node is needed by a result
//   G3 results    there is at least one, each a parameter or a node of the graph
//   G4 parameters are leaves, distinct, with legal and distinct names
//   G5 typed      every node has the type that its op, operands and attributes give (layout apart)
//   G6 layout     nhwc only at rank 4
//   G7 merged     no two nodes of one region are equal
//   G8 attributes are those of the row, complete and in order
#include <unordered_set>

#include "ir/base/check.h"
#include "ir/graph.h"
#include "ir/infer.h"

namespace fusejit::ir {
namespace {

[[noreturn]] void broken(const Graph& graph, const Node* node, std::string_view rule, const std::string& sentence) {
  throw InternalError(fmt::format("graph @{}: {}: {}{}", graph.name(), rule, sentence,
                                  node && node->op != Op::parameter ? "\n  in " + print_node(graph, *node) : ""));
}

int index_or_none(const Graph& graph, const Node* node) {
  try {
    return graph.index_of(node);
  } catch (const InternalError&) {
    return -1;
  }
}

void check_parameters(const Graph& graph) {
  std::unordered_set<std::string_view> names;
  for (std::size_t i = 0; i < graph.parameters().size(); ++i) {
    const Value& p = graph.parameters()[i];
    if (p->op != Op::parameter) broken(graph, p.get(), "G4", fmt::format("parameter {} is no leaf", i));
    if (!names.insert(graph.parameter_name(i)).second)
      broken(graph, nullptr, "G4", "two parameters are called " + graph.parameter_name(i));
  }
}

void check_node(const Graph& graph, const Node& node, int index) {
  for (const Operand& operand : node.operands) {
    if (operand.is_number()) continue;
    const int at = index_or_none(graph, operand.value.get());
    if (at < 0)
      broken(graph, nullptr, "G1", fmt::format("node {} ({}) uses a value from outside", index, name(node.op)));
    if (at >= index) broken(graph, &node, "G1", "an operand stands after its user");
  }
  const OpDef& row = op_def(node.op);
  if (row.family == Family::leaf || row.family == Family::kernel) broken(graph, &node, "G5", "this is no op of graphs");
  if (node.attrs.size() != row.attrs.size()) broken(graph, &node, "G8", "attributes are missing");
  Type type;
  try {
    const InferContext context{node.op, node.operands, node.attrs};
    type = row.infer ? row.infer(context) : infer_elementwise(context);
  } catch (const UserError& error) {
    broken(graph, &node, "G5", error.what());
  }
  if (type.dtype != node.type.dtype || type.shape != node.type.shape)
    broken(graph, &node, "G5", "the type should be " + type.str());
  if (node.type.layout == Layout::nhwc && node.type.shape.rank() != 4)
    broken(graph, &node, "G6", "nhwc at another rank than 4");
}

void check_reached(const Graph& graph) {
  std::vector<bool> used(static_cast<std::size_t>(graph.value_count()));
  for (const Value& result : graph.results()) used[static_cast<std::size_t>(graph.index_of(result.get()))] = true;
  for (int i = graph.value_count(); i-- > static_cast<int>(graph.parameters().size());) {
    if (!used[static_cast<std::size_t>(i)]) broken(graph, graph.value(i).get(), "G2", "no result needs this node");
    for (const Operand& operand : graph.value(i)->operands)
      if (operand.value) used[static_cast<std::size_t>(graph.index_of(operand.value.get()))] = true;
  }
}

}  // namespace

void verify(const Graph& graph) {
  if (graph.results().empty()) broken(graph, nullptr, "G3", "there is no result");
  for (const Value& result : graph.results())
    if (index_or_none(graph, result.get()) < 0) broken(graph, nullptr, "G3", "a result is no value of the graph");
  check_parameters(graph);
  int index = static_cast<int>(graph.parameters().size());
  for (const Value& node : graph.nodes()) check_node(graph, *node, index++);
  check_reached(graph);
  const int distinct = count_distinct(graph);
  if (distinct != static_cast<int>(graph.nodes().size()))
    broken(graph, nullptr, "G7", fmt::format("{} nodes, {} of them distinct", graph.nodes().size(), distinct));
}

}  // namespace fusejit::ir
