#include "ir/base/check.h"

#include <algorithm>
#include <unordered_set>

#include "frontend/onnx/graph.h"
#include "frontend/onnx/rows.h"
#include "ir/base/number.h"

namespace fusejit::onnx {
namespace {

constexpr std::size_t kMostListed = 200;  // sentences in one error

// True if `value` is one of the words between bars.
bool is_one_of(std::string_view value, std::string_view words) {
  while (true) {
    const std::size_t bar = words.find('|');
    if (words.substr(0, bar) == value) return true;
    if (bar == std::string_view::npos) return false;
    words.remove_prefix(bar + 1);
  }
}

std::vector<std::string> texts(const Attribute& attribute) {
  std::vector<std::string> all;
  if (attribute.kind == Kind::text) all.push_back(attribute.text);
  if (attribute.kind == Kind::integer) all.push_back(std::to_string(attribute.integer));
  if (attribute.kind == Kind::number) all.push_back(ir::shortest_text(attribute.number));
  for (const std::int64_t i : attribute.integers) all.push_back(std::to_string(i));
  return all;
}

// Why the attribute cannot be meant, or "".
std::string refusal(const Row& row, const Attribute& attribute) {
  const std::string name = printable(attribute.name);
  const auto rule = std::find_if(row.attributes.begin(), row.attributes.end(),
                                 [&](const AttributeRule& r) { return attribute.name == r.name; });
  if (rule == row.attributes.end()) return fmt::format("its attribute '{}' is not understood", name);
  if (!attribute.problem.empty()) return fmt::format("its attribute '{}': {}", name, attribute.problem);
  if (attribute.kind != rule->kind) return fmt::format("its attribute '{}' is of another kind", name);
  if (*rule->only == '\0') return "";
  for (const std::string& value : texts(attribute)) {
    if (!is_one_of(value, rule->only))
      return fmt::format("its {} is {}, understood is {}", name, printable(value), rule->only);
  }
  return "";
}

std::string refusal(const Graph& graph, const Node& node) {
  if (!node.domain.empty()) return fmt::format("ops of the domain '{}' are not understood", printable(node.domain));
  if (!node.row) {
    return is_known(node.op) ? fmt::format("in op set {} it has no meaning here", graph.opset)
                             : "there is no such op here";
  }
  const Row& row = *node.row;
  const int inputs = static_cast<int>(node.inputs.size());
  if (inputs < row.least || inputs > row.most) {
    return row.most == INT_MAX
               ? fmt::format("it has {} operands, at least {} are needed", inputs, row.least)
               : fmt::format("it has {} operands, {} to {} are understood", inputs, row.least, row.most);
  }
  for (int i = 0; i < row.least; ++i) {
    if (node.inputs[static_cast<std::size_t>(i)] < 0) return fmt::format("its operand {} is left out", i);
  }
  for (std::size_t i = static_cast<std::size_t>(row.results); i < node.outputs.size(); ++i) {
    if (node.outputs[i] >= 0) return fmt::format("its result {} is not computed here", i);
  }
  std::unordered_set<std::string_view> names;
  for (const Attribute& attribute : node.attributes) {
    if (!names.insert(attribute.name).second)
      return fmt::format("its attribute '{}' is there twice", printable(attribute.name));
    if (std::string reason = refusal(row, attribute); !reason.empty()) return reason;
  }
  return "";
}

class Order {
 public:
  explicit Order(const Graph& graph) : graph_(graph), is_there_(graph.names.size()) {}
  void define(int value, const char* what) {
    FJ_CHECK(!is_there_[static_cast<std::size_t>(value)], "{}: two values are called '{}', the second is {}",
             graph_.source, name(value), what);
    is_there_[static_cast<std::size_t>(value)] = true;
  }
  bool is_there(int value) const { return is_there_[static_cast<std::size_t>(value)]; }
  std::string name(int value) const { return printable(graph_.names[static_cast<std::size_t>(value)]); }

 private:
  const Graph& graph_;
  std::vector<bool> is_there_;
};

// Nodes stand behind those that they read: so there are no cycles.
void check_order(const Graph& graph) {
  Order order(graph);
  for (const Initializer& initializer : graph.initializers) order.define(initializer.value, "an initializer");
  for (const Declared& input : graph.inputs) order.define(input.value, "an input");
  for (const Node& node : graph.nodes) {
    for (const int value : node.inputs) {
      FJ_CHECK(
          value < 0 || order.is_there(value),
          "{}: node '{}' ({}) reads '{}', which no node before it computes: nodes must stand in order, without cycles",
          graph.source, printable(node.name), printable(node.op), order.name(value));
    }
    for (const int value : node.outputs) {
      if (value >= 0) order.define(value, "the result of a node");
    }
  }
  FJ_CHECK(!graph.results.empty(), "{}: the graph has no results", graph.source);
  for (const Declared& result : graph.results)
    FJ_CHECK(order.is_there(result.value), "{}: nothing computes the result '{}'", graph.source,
             order.name(result.value));
}

// Before IR version 4 initializers were inputs too.
void drop_inputs_with_values(Graph& graph) {
  std::vector<bool> has_value(graph.names.size());
  for (const Initializer& initializer : graph.initializers)
    has_value[static_cast<std::size_t>(initializer.value)] = true;
  std::erase_if(graph.inputs, [&](const Declared& input) { return has_value[static_cast<std::size_t>(input.value)]; });
}

// Results that nobody reads are as good as left out.
void drop_unread_results(Graph& graph) {
  std::vector<bool> is_read(graph.names.size());
  const auto read = [&](int value) {
    if (value >= 0) is_read[static_cast<std::size_t>(value)] = true;
  };
  for (const Node& node : graph.nodes) std::for_each(node.inputs.begin(), node.inputs.end(), read);
  for (const Declared& result : graph.results) read(result.value);
  for (Node& node : graph.nodes) {
    for (int& value : node.outputs) {
      if (value >= 0 && !is_read[static_cast<std::size_t>(value)]) value = -1;
    }
  }
}

}  // namespace

std::string printable(const std::string& name) {
  constexpr std::size_t kMost = 120;
  std::string text = name.substr(0, kMost);
  for (char& c : text) {
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) c = '?';
  }
  return name.size() > kMost ? text + "..." : text;
}

void Problems::add(const Node& node, const std::string& reason, bool wrong) {
  wrong_ |= wrong;
  const std::string op = printable(node.op);
  const auto same = std::find_if(problems_.begin(), problems_.end(),
                                 [&](const Problem& p) { return p.op == op && p.reason == reason; });
  if (same != problems_.end()) {
    ++same->more;
    return;
  }
  const std::string name = node.name.empty() ? "a node without a name" : printable(node.name);
  problems_.push_back({fmt::format("{} ({})", name, op), op, reason});
}

void Problems::add(const std::string& what, const std::string& reason, bool wrong) {
  problems_.push_back({what, "", reason});
  wrong_ |= wrong;
}

void Problems::throw_if_any() const {
  if (problems_.empty()) return;
  std::size_t parts = problems_.size();
  for (const Problem& p : problems_) parts += p.more;
  const std::size_t listed = std::min(problems_.size(), kMostListed);
  std::string text = fmt::format("{}: {} of the model cannot be meant: ", graph_.source,
                                 parts == 1 ? "one part" : fmt::format("{} parts", parts));
  for (std::size_t i = 0; i < listed; ++i) {
    const Problem& p = problems_[i];
    text += fmt::format("{}{}{}: {}", i > 0 ? "; " : "", p.what,
                        p.more > 0 ? fmt::format(" and {} more of this op", p.more) : "", p.reason);
  }
  if (listed < problems_.size()) text += fmt::format("; and {} more reasons", problems_.size() - listed);
  if (wrong_) throw UserError(text);
  throw UnsupportedError(text);
}

void check(Graph& graph, Problems& problems) {
  drop_inputs_with_values(graph);
  check_order(graph);
  drop_unread_results(graph);
  for (const Declared& input : graph.inputs) {
    if (!input.dtype)
      problems.add(fmt::format("input '{}'", printable(graph.names[static_cast<std::size_t>(input.value)])),
                   fmt::format("it is {}, which no tensor is", input.dtype_name), false);
  }
  for (const Initializer& initializer : graph.initializers) {
    if (!initializer.problem.empty())
      problems.add(fmt::format("initializer '{}'", printable(graph.names[static_cast<std::size_t>(initializer.value)])),
                   initializer.problem, false);
  }
  for (Node& node : graph.nodes) {
    if (node.domain.empty()) node.row = find_row(node.op, graph.opset);
    if (const std::string reason = refusal(graph, node); !reason.empty()) {
      node.row = nullptr;
      problems.add(node, reason, false);
    }
  }
}

}  // namespace fusejit::onnx
