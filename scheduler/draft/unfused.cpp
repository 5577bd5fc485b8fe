#include "scheduler/draft/unfused.h"

#include <map>

#include "ir/base/at.h"
#include "ir/base/check.h"
#include "ir/passes/passes.h"
#include "scheduler/draft/fused.h"
#include "scheduler/fuse/analysis.h"

namespace fusejit::scheduler {
Draft draft_unfused(const ir::Graph& graph, const PlanOptions& options) {
  Draft all;
  StepMaker steps;
  PlanOptions of_one = options;
  of_one.rules = Rules::all;  // within what one op is made of
  std::vector<int> value_of(at(graph.value_count()), -1);
  for (int p = 0; p < static_cast<int>(graph.parameters().size()); ++p) {
    const Type& type = graph.value(p).type();
    value_of[at(p)] = static_cast<int>(all.values.size());
    all.values.push_back({DraftKind::parameter, p, type.dtype, type.bytes(), label(graph, p), {}});
  }
  for (int v = static_cast<int>(graph.parameters().size()); v < graph.value_count(); ++v) {
    const ir::Node& node = *graph.value(v);
    std::vector<ir::Value> parameters;
    std::vector<int> given;
    std::vector<ir::Operand> operands;
    std::map<int, ir::Value> made;
    for (const ir::Operand& operand : node.operands) {
      if (operand.is_number()) {
        operands.push_back(operand);
        continue;
      }
      // By where it is kept: a node that changes nothing is kept where its operand is.
      const int id = graph.index_of(operand.value.get());
      const auto [place, fresh] = made.try_emplace(value_of[at(id)]);
      if (fresh) {
        place->second = ir::parameter(operand.value.type(), "p" + std::to_string(parameters.size()));
        parameters.push_back(place->second), given.push_back(id);
      }
      operands.push_back(place->second);
    }
    const ir::OriginScope scope(node);
    const ir::Value alone = ir::build_in(node.type.layout, node.op, operands, node.attrs);
    const ir::Graph one =
        ir::optimise(ir::capture(std::string(ir::name(node.op)), parameters, {alone}), options.target);
    const auto by_its_name = [op = label(graph, v)](const auto& reschedule) {
      return [&reschedule, op](const std::string&, const auto&... of) { return reschedule(op, of...); };
    };
    if (options.reschedule.anchor) of_one.reschedule.anchor = by_its_name(options.reschedule.anchor);
    if (options.reschedule.domain) of_one.reschedule.domain = by_its_name(options.reschedule.domain);
    Draft draft;
    try {
      draft = draft_fused(one, of_one, false, steps);
    } catch (const NoKernel& error) {
      throw NoKernel(error.what(), graph, {v}, false);
    }
    all.fallbacks.insert(all.fallbacks.end(), draft.fallbacks.begin(), draft.fallbacks.end());
    std::vector<int> renamed;
    for (const DraftValue& value : draft.values) {
      if (value.kind == DraftKind::parameter) {
        renamed.push_back(value_of[at(given[at(value.parameter)])]);
        continue;
      }
      renamed.push_back(static_cast<int>(all.values.size()));
      all.values.push_back(value);
      all.values.back().label = label(graph, v);
    }
    for (PlanStep step : draft.steps) {
      for (int& value : step.values) value = renamed[at(value)];
      if (step.library) {
        for (int& value : step.library->values) value = renamed[at(value)];
      }
      step.ops = {label(graph, v)};
      step.nodes = {v};
      all.steps.push_back(std::move(step));
    }
    value_of[at(v)] = renamed[at(draft.results[0])];
  }
  for (const ir::Value& result : graph.results()) all.results.push_back(value_of[at(graph.index_of(result.get()))]);
  return all;
}

}  // namespace fusejit::scheduler
