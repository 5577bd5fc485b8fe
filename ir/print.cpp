// Graph -> canonical text (ops.md §1): nodes numbered in order, every attribute written, numbers shortest.
#include "ir/base/number.h"
#include "ir/graph.h"

namespace fusejit::ir {
namespace {

void append_value(std::string& out, const Graph& graph, const Node* node) {
  const int index = graph.index_of(node);
  const int parameters = static_cast<int>(graph.parameters().size());
  out += '%';
  if (index < parameters)
    out += graph.parameter_name(static_cast<std::size_t>(index));
  else
    out += std::to_string(index - parameters);
}

void append_node(std::string& out, const Graph& graph, const Node& node) {
  append_value(out, graph, &node);
  out.append(" = ").append(name(node.op)) += '(';
  for (std::size_t i = 0; i < node.operands.size(); ++i) {
    const Operand& operand = node.operands[i];
    if (i) out += ", ";
    if (operand.value)
      append_value(out, graph, operand.value.get());
    else
      out += operand.is_integer ? std::to_string(operand.integer) : shortest_text(operand.number);
  }
  out.append(")").append(node.attrs.str());
  if (node.region) out.append(" @").append(std::to_string(node.region));
  out.append(" : ").append(node.type.str());
}

}  // namespace

std::string print_node(const Graph& graph, const Node& node) {
  std::string out;
  append_node(out, graph, node);
  return out;
}

std::string print(const Graph& graph) {
  std::string out = "graph @" + graph.name() + "(";
  for (std::size_t i = 0; i < graph.parameters().size(); ++i) {
    if (i) out += ", ";
    out.append("%").append(graph.parameter_name(i)).append(": ").append(graph.parameters()[i].type().str());
  }
  out += ") {\n";
  for (const Value& node : graph.nodes()) {
    out += "  ";
    append_node(out, graph, *node);
    out += '\n';
  }
  out += "  return ";
  for (std::size_t i = 0; i < graph.results().size(); ++i) {
    if (i) out += ", ";
    append_value(out, graph, graph.results()[i].get());
  }
  return out += "\n}\n";
}

}  // namespace fusejit::ir
