#include "runtime/disk/entries/plan_entry.h"

#include <fmt/ranges.h>

#include <sstream>

#include "ir/base/number.h"
#include "ir/strict.h"
#include "runtime/disk/identity.h"
#include "scheduler/names/steps.h"

namespace fusejit::runtime::disk {
namespace {

std::string flags(const std::vector<bool>& per_parameter) {
  std::string text;
  for (std::size_t i = 0; i < per_parameter.size(); ++i) {
    if (per_parameter[i]) text += fmt::format("{}\n", i);
  }
  return text;
}

// The graph, divided by what a person would say has changed: a line a value in each part.
struct GraphParts {
  std::string ops, attributes, shapes, dtypes, layouts;

  explicit GraphParts(const ir::Graph& graph) : graph_(graph) {
    for (const ir::Value& parameter : graph.parameters()) add_type(*parameter);
    for (const ir::Value& node : graph.nodes()) {
      add_type(*node);
      add(*node);
    }
    ops += fmt::format("of {} parameters:", graph.parameters().size());
    for (const ir::Value& result : graph.results()) ops += ' ' + name_of(result.get());
  }

 private:
  std::string name_of(const ir::Node* node) const {
    const int index = graph_.index_of(node), parameters = static_cast<int>(graph_.parameters().size());
    return index < parameters ? fmt::format("p{}", index) : fmt::format("%{}", index - parameters);
  }
  void add(const ir::Node& node) {
    const std::string own = name_of(&node);
    std::string numbers = node.attrs.str();
    ops.append(own).append(" = ").append(ir::name(node.op)) += '(';
    for (const ir::Operand& operand : node.operands) {
      if (operand.value) {
        ops.append(name_of(operand.value.get())) += ' ';
        continue;
      }
      ops += "number ";
      numbers.append(" ").append(operand.is_integer ? std::to_string(operand.integer)
                                                    : ir::shortest_text(operand.number));
    }
    ops += node.region ? fmt::format(") @{}\n", node.region) : ")\n";
    if (!numbers.empty()) attributes.append(own).append(" ").append(ir::name(node.op)).append(numbers) += '\n';
  }
  void add_type(const ir::Node& node) {
    const std::string own = name_of(&node);
    shapes.append(own).append(" ").append(node.type.shape.str()) += '\n';
    dtypes.append(own).append(" ").append(name(node.type.dtype)) += '\n';
    layouts.append(own).append(node.type.layout == Layout::nhwc ? " nhwc\n" : " standard\n");
  }

  const ir::Graph& graph_;
};

}  // namespace

CacheKey plan_key(const ir::Graph& graph, const PlanWish& wish, std::string_view planner) {
  GraphParts parts(graph);
  return CacheKey("plan", {{"ops", std::move(parts.ops)},
                           {"shapes", std::move(parts.shapes)},
                           {"dtypes", std::move(parts.dtypes)},
                           {"layouts", std::move(parts.layouts)},
                           {"attributes", std::move(parts.attributes)},
                           {"donated", flags(wish.donated)},
                           {"fixed", flags(wish.fixed)},
                           {"target", wish.target.str()},
                           {"rules", std::string(name(wish.rules))},
                           {"memory limit", wish.memory_limit.str()},
                           {"library", wish.library},
                           {"tune", wish.tune},
                           {"planner", std::string(planner)}});
}

CacheKey plan_key(const ir::Graph& graph, const PlanWish& wish) { return plan_key(graph, wish, source_identity()); }

std::vector<Section> plan_sections(const ir::Graph& graph, const scheduler::Plan& plan) {
  return {{"plan", scheduler::print(plan)}, {"graph", ir::print(graph)}};
}

std::vector<Section> no_plan_sections(const ir::Graph& graph, const scheduler::NoKernel& no_kernel) {
  return {{"no kernel", no_kernel.what()},
          {"cut", ir::print(no_kernel.graph())},
          {"nodes", fmt::format("{}", fmt::join(no_kernel.nodes(), " "))},
          {"empty", no_kernel.is_empty() ? "1" : "0"},
          {"graph", ir::print(graph)}};
}

std::optional<scheduler::Plan> plan_in(const Entry& entry, const ir::Graph& graph) {
  if (const std::string& why = entry.section("no kernel"); !why.empty()) {
    std::optional<ir::Graph> cut;
    try {
      cut = ir::parse_graph(entry.section("cut"));
    } catch (const Error&) {
      return std::nullopt;
    }
    std::vector<int> nodes;
    std::istringstream numbers(entry.section("nodes"));
    for (int node = 0; numbers >> node;) nodes.push_back(node);
    throw scheduler::NoKernel(why, *std::move(cut), std::move(nodes), entry.section("empty") == "1");
  }
  try {
    scheduler::Plan plan = scheduler::parse_plan(entry.section("plan"));
    if (ir::is_strict()) scheduler::verify(plan);
    if (plan.parameters.size() != graph.parameters().size() || plan.results.size() != graph.results().size())
      return std::nullopt;
    plan.name = graph.name();
    scheduler::name_steps(plan, graph);
    return plan;
  } catch (const Error&) {
    return std::nullopt;
  }
}

}  // namespace fusejit::runtime::disk
