#include "tools/fusejit-dump/picture/picture.h"

#include <fmt/format.h>

#include <unordered_set>

#include "ir/base/number.h"
#include "ir/kernel/kernel.h"
#include "scheduler/contents.h"
#include "scheduler/names/steps.h"
#include "scheduler/report/explained.h"
#include "scheduler/uses.h"
#include "tools/fusejit-dump/markup.h"

namespace fusejit::tools {
namespace {

std::string flop_text(double flop) {
  return flop >= 1e9 ? fmt::format("{:.2f} GFLOP", flop / 1e9) : fmt::format("{:.2f} MFLOP", flop / 1e6);
}

Box box_of(const scheduler::PlanStep& step, std::size_t number, const ir::Graph& recorded) {
  Box box;
  box.title = fmt::format("{} {}", number, step.name);
  box.words = scheduler::written_ops(step, recorded);
  box.note = fmt::format("{} in, {} out", ir::bytes_text(step.read_bytes), ir::bytes_text(step.written_bytes));
  if (step.flop > 0) box.note += ", " + flop_text(step.flop);
  box.whole = fmt::format("{}\n{}\n{}\n{}", box.title, fmt::join(box.words, "\n"), fmt::join(step.ops, ", "), box.note);
  box.kind = kind_of(step);
  return box;
}

}  // namespace

Picture picture_of(const ir::Graph& graph) {
  Picture picture;
  picture.title = fmt::format("@{} as recorded: {} ops", graph.name(), graph.nodes().size());
  const int parameters = static_cast<int>(graph.parameters().size());
  const auto flow = [&](const ir::Value& value, int to) {
    const int index = graph.index_of(value.get());
    const bool is_parameter = index < parameters;
    const std::string name =
        is_parameter ? graph.parameter_name(static_cast<std::size_t>(index)) : std::to_string(index - parameters);
    picture.flows.push_back({is_parameter ? -1 : index - parameters, to, "%" + name, value.type().bytes()});
  };
  for (const ir::Value& node : graph.nodes()) {
    const int number = static_cast<int>(picture.boxes.size());
    Box box;
    box.title = fmt::format("%{} {}", number, ir::name(node->op));
    if (const std::string written = scheduler::written_op(*node); written != ir::name(node->op)) box.words = {written};
    box.words.push_back(node.type().str());
    box.whole = ir::print_node(graph, *node);
    box.kind = kind_of(node->op);
    picture.boxes.push_back(std::move(box));
    std::unordered_set<const ir::Node*> read;
    for (const ir::Operand& operand : node->operands)
      if (!operand.is_number() && read.insert(operand.value.get()).second) flow(operand.value, number);
  }
  for (const ir::Value& result : graph.results()) flow(result, -1);
  return picture;
}

Picture picture_of(const scheduler::Plan& plan, const ir::Graph& recorded, const std::vector<std::string>& links) {
  Picture picture;
  picture.title = fmt::format("@{} on {}, rules={}: {} kernels, {} moved", plan.name, plan.target.str(),
                              name(plan.rules), plan.steps.size(), ir::bytes_text(plan.ledger_bytes()));
  std::vector<int> writer(plan.values.size(), -1);
  scheduler::Contents contents(plan);
  const auto flow = [&](int value, int to) {
    const auto v = static_cast<std::size_t>(value);
    picture.flows.push_back({writer[v], to, contents[value], plan.values[v].bytes});
  };
  // What lies in the memory of a concatenation flows from all who stored parts of it.
  const std::vector<bool> in_parts = scheduler::values_in_parts(plan);
  const auto is_in_parts = [&](int value) { return in_parts[static_cast<std::size_t>(value)]; };
  for (const scheduler::Edge& edge : scheduler::edges_of(plan)) {
    if (is_in_parts(edge.value))
      picture.flows.push_back({edge.producer, edge.consumer, contents[edge.value], edge.bytes});
  }
  for (std::size_t s = 0; s < plan.steps.size(); ++s) {
    const scheduler::PlanStep& step = plan.steps[s];
    const int number = static_cast<int>(s);
    picture.boxes.push_back(box_of(step, s, recorded));
    if (s < links.size()) picture.boxes.back().link = links[s];
    // A value that the kernel reads in two places flows to it once; what it writes first and reads then does not flow.
    std::unordered_set<int> read;
    scheduler::for_each_use(step, [&](int value, ir::MemKind kind) {
      const bool own = plan.values[static_cast<std::size_t>(value)].first_step == number;
      if (kind != ir::MemKind::write && !own && !is_in_parts(value) && read.insert(value).second) flow(value, number);
    });
    scheduler::for_each_use(step, [&](int value, ir::MemKind kind) {
      if (kind != ir::MemKind::read) writer[static_cast<std::size_t>(value)] = number;
    });
    contents.pass(step);
  }
  for (const int result : plan.results) flow(result, -1);
  return picture;
}

}  // namespace fusejit::tools
