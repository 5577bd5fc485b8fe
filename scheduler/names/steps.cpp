#include "scheduler/names/steps.h"

#include <algorithm>
#include <cctype>
#include <functional>
#include <string_view>
#include <unordered_set>
#include <utility>

#include "ir/passes/passes.h"

namespace fusejit::scheduler {
namespace {

using ir::Role;

constexpr std::size_t kLongestOp = 40, kLongestLayer = 30;  // any fits into a name

bool is_gradient(Role role) { return role == Role::gradient || role == Role::weight_gradient; }

std::string identifier(std::string_view text) {
  std::string made(text);
  for (char& c : made) {
    const auto byte = static_cast<unsigned char>(c);
    c = std::isalnum(byte) ? static_cast<char>(std::tolower(byte)) : '_';
  }
  return made;
}

// One thing that the user wrote, perhaps its gradient.
struct Part {
  std::string_view module;
  std::string op;
  std::string_view which;  // of the gradients that an anchor has
  Role role;
  bool anchor;
  bool incidental;  // moves or converts: said only where there is nothing else
  bool mask;        // of a gradient

  explicit Part(const ir::Node& node)
      : module(node.origin.module ? node.origin.module : ""),
        op(identifier(std::string_view(called_op(node)).substr(0, kLongestOp))),
        role(node.origin.role) {
    const ir::OpDef& row = ir::op_def(node.op);
    if (std::isdigit(static_cast<unsigned char>(op[0]))) op.insert(op.begin(), '_');
    anchor = row.is_contraction();
    if (op.starts_with("batch_norm")) op = "bn";
    if (role == Role::weight_gradient) which = "weight_grad";
    if (role == Role::gradient && row.is_contraction()) which = "input_grad";
    incidental = row.family == ir::Family::source || (row.copies_bits && row.min_operands == 1);
    mask = is_gradient(role) && node.type.dtype == DType::boolean;
  }
  bool does_the_same_as(const Part& other) const {
    return op == other.op && role == other.role && which == other.which;
  }
};

std::vector<Part> parts_of(const ir::Graph& graph, std::span<const int> values) {
  std::vector<Part> parts;
  // What an anchor, which stands first, computes of its operand is not what its kernel is for.
  const bool around_anchor = !values.empty() && ir::op_def(graph.value(values[0])->op).is_contraction();
  for (const int value : values)
    if (!around_anchor || value >= values[0]) parts.emplace_back(*graph.value(value));
  const auto keep = [&parts](auto wanted) {
    if (std::any_of(parts.begin(), parts.end(), wanted)) std::erase_if(parts, std::not_fn(wanted));
  };
  keep([](const Part& part) { return !part.incidental; });
  // What a gradient computes again of the forward pass is not what it is for; nor is a mask what the forward pass is
  // for that keeps it.
  const bool any_gradient =
      std::any_of(parts.begin(), parts.end(), [](const Part& part) { return is_gradient(part.role) && !part.mask; });
  if (any_gradient) {
    keep([](const Part& part) { return part.role != Role::forward; });
  } else {
    keep([](const Part& part) { return !part.mask; });
  }
  std::stable_partition(parts.begin(), parts.end(), [](const Part& part) { return part.role != Role::update; });
  return parts;
}

// What a plan's text may quote.
std::string printable(std::string text) {
  for (char& c : text) c = c == '"' || c < ' ' || c > '~' ? '?' : c;
  return text;
}

// What both paths begin with, whole names: "layer1.0" of "layer1.0.bn1" and "layer1.0.bn2".
std::string_view common_path(std::string_view a, std::string_view b) {
  std::size_t end = 0;
  for (std::size_t i = 0;; ++i) {
    if ((i >= a.size() || a[i] == '.') && (i >= b.size() || b[i] == '.')) end = i;
    if (i >= a.size() || i >= b.size() || a[i] != b[i]) return a.substr(0, end);
  }
}

// What names the layer goes to the front: the anchor, else what stands deepest.
void put_leader_first(std::vector<Part>& parts) {
  auto leader = std::find_if(parts.begin(), parts.end(), [](const Part& part) { return part.anchor; });
  if (leader == parts.end()) {
    const auto depth = [](const Part& part) {
      return part.module.empty() ? 0 : 1 + std::count(part.module.begin(), part.module.end(), '.');
    };
    leader =
        std::max_element(parts.begin(), parts.end(), [&](const Part& a, const Part& b) { return depth(a) < depth(b); });
  }
  std::rotate(parts.begin(), leader, leader + 1);
}

// Where the first part stands; if another layer does the same in this kernel, what the two have in common.
std::string_view layer_of(const std::vector<Part>& parts) {
  std::string_view layer = parts[0].module;
  for (const Part& part : parts) {
    if (part.does_the_same_as(parts[0])) layer = common_path(layer, part.module);
  }
  return layer;
}

// True for "layer1.0.conv2" and conv2d: the layer's own name says the op.
bool says(std::string_view layer, std::string_view op) {
  std::string_view last = layer.substr(layer.rfind('.') + 1);  // npos + 1 is 0
  while (!last.empty() && std::isdigit(static_cast<unsigned char>(last.back()))) last.remove_suffix(1);
  return last.size() >= 2 && op.find(identifier(last)) != std::string_view::npos;
}

// "layer1_0"; of a long path the last names.
std::string short_layer(std::string_view path) {
  while (path.size() > kLongestLayer && path.find('.') != std::string_view::npos)
    path.remove_prefix(path.find('.') + 1);
  std::string layer = identifier(path.substr(0, kLongestLayer));
  return !layer.empty() && std::isdigit(static_cast<unsigned char>(layer[0])) ? "layer" + layer : layer;
}

// Gradients that follow each other are said to be such at their end.
std::string with_gradient(std::string name, bool ends_gradients) {
  constexpr std::string_view kGradient = "_grad";
  if (ends_gradients && !name.ends_with(kGradient)) name += kGradient;
  return name;
}

std::string name_of(const std::vector<Part>& parts, std::string_view layer) {
  std::string name = short_layer(layer);
  bool in_gradients = false;
  for (auto part = parts.begin(); part != parts.end(); ++part) {
    if (std::any_of(parts.begin(), part, [&](const Part& before) { return before.does_the_same_as(*part); })) continue;
    std::string word = part == parts.begin() && says(layer, part->op) ? "" : part->op;
    if (!part->which.empty()) word.append(word.empty() ? "" : "_").append(part->which);
    const bool is_more = is_gradient(part->role);
    std::string longer = with_gradient(name, in_gradients && !is_more);
    longer.append(longer.empty() || word.empty() ? "" : "_").append(word);
    if (with_gradient(longer, is_more).size() > kLongestName) break;
    name = std::move(longer), in_gradients = is_more;
  }
  return with_gradient(std::move(name), in_gradients);
}

// PlanStep::nodes as values of the graph.
std::vector<int> values_of(const PlanStep& step, const ir::Graph& recorded) {
  std::vector<int> values;
  for (const int node : step.nodes) {
    const bool is_there = node >= 0 && static_cast<std::size_t>(node) < recorded.nodes().size();
    if (is_there) values.push_back(node + static_cast<int>(recorded.parameters().size()));  // a file may say anything
  }
  return values;
}

}  // namespace

std::vector<int> computed_nodes(const ir::Graph& graph, const std::vector<bool>& stored, const Group& group) {
  std::vector<int> found;
  std::unordered_set<int> seen;
  for (const auto* list : {&group.inner, &group.stores, &group.reductions, &group.finals, &group.copies}) {
    for (const int node : *list) {
      if (seen.insert(node).second) found.push_back(node);
    }
  }
  for (std::size_t i = 0; i < found.size(); ++i) {
    for (const ir::Operand& operand : graph.value(found[i])->operands) {
      if (operand.is_number()) continue;
      const int v = graph.index_of(operand.value.get());
      if (!stored[static_cast<std::size_t>(v)] && seen.insert(v).second) found.push_back(v);
    }
  }
  std::sort(found.begin(), found.end(),
            [&](int a, int b) { return std::pair(a != group.anchor, a) < std::pair(b != group.anchor, b); });
  return found;
}

std::string name_by_ops(const ir::Graph& graph, std::span<const int> values) {
  const std::vector<Part> parts = parts_of(graph, values);
  return parts.empty() ? "nothing" : name_of(parts, "");
}

std::string name_by_layer(const ir::Graph& graph, std::span<const int> values) {
  std::vector<Part> parts = parts_of(graph, values);
  if (parts.empty()) return "nothing";
  put_leader_first(parts);
  return name_of(parts, layer_of(parts));
}

std::string leading_layer(const ir::Graph& graph, std::span<const int> values) {
  std::vector<Part> parts = parts_of(graph, values);
  if (parts.empty()) return "";
  put_leader_first(parts);
  return std::string(parts[0].module);
}

RecordedNodes::RecordedNodes(const ir::Graph& recorded) {
  for (std::size_t i = 0; i < recorded.nodes().size(); ++i)
    by_serial_.emplace(recorded_serial(*recorded.nodes()[i]), static_cast<int>(i));
}

std::vector<int> RecordedNodes::behind(const ir::Graph& graph, std::span<const int> nodes) const {
  std::vector<int> found;
  for (const int node : nodes) {
    const auto place = by_serial_.find(recorded_serial(*graph.value(node)));
    if (place != by_serial_.end() && std::find(found.begin(), found.end(), place->second) == found.end())
      found.push_back(place->second);
  }
  return found;
}

void name_steps(Plan& plan, const ir::Graph& recorded) {
  for (PlanStep& step : plan.steps) {
    const std::vector<int> values = values_of(step, recorded);
    step.name = values.empty() ? step.kernel->name : name_by_layer(recorded, values);
    step.layer = printable(leading_layer(recorded, values));
    if (values.empty()) continue;
    if (step.kernel->name.starts_with(kPacking)) step.name += "_pack";
    if (step.kernel->name == ir::kNewLayout) step.name += "_layout";
  }
}

std::string written_op(const ir::Node& node) {
  std::string text = node.origin.module ? std::string(node.origin.module) + " " : "";
  text += called_op(node);
  if (node.origin.role == Role::gradient) text += " grad";
  if (node.origin.role == Role::weight_gradient) text += " weight grad";
  return text;
}

std::vector<std::string> written_ops(const PlanStep& step, const ir::Graph& recorded) {
  std::vector<std::string> written;
  for (const int value : values_of(step, recorded)) {
    std::string text = written_op(*recorded.value(value));
    if (std::find(written.begin(), written.end(), text) == written.end()) written.push_back(std::move(text));
  }
  return written;
}

}  // namespace fusejit::scheduler
