// list: the built-in models; of a SOURCE, its kernels in the order they run.
#include <fmt/format.h>

#include "frontend/models/named.h"
#include "scheduler/names/steps.h"
#include "tools/fusejit-dump/planned.h"
#include "tools/fusejit-dump/table.h"

namespace fusejit::tools {
namespace {

int list_models(const PlanOptions& options) {
  Json models = Json::array();
  std::vector<std::vector<std::string>> rows;
  for (const models::NamedModel& model : models::named_models()) {
    models.push_back({{"name", model.name}, {"example", model.example}, {"meaning", model.meaning}});
    rows.push_back({std::string(model.example), std::string(model.meaning)});
  }
  return put(options.json() ? text({{"models", models}}) : table(rows, "ll"));
}

int list_kernels(const PlanOptions& options, Invocation& invocation) {
  const Planned planned = make_plan(invocation, options);
  const scheduler::Plan& plan = planned.plan;
  Json kernels = Json::array();
  std::vector<std::vector<std::string>> rows;
  for (std::size_t s = 0; s < plan.steps.size(); ++s) {
    const scheduler::PlanStep& step = plan.steps[s];
    const std::vector<std::string> written = scheduler::written_ops(step, planned.source.graph);
    kernels.push_back({{"index", s}, {"name", step.name}, {"written", written}, {"ops", step.ops}});
    rows.push_back({std::to_string(s), step.name, fmt::format("{}", fmt::join(written, ", "))});
  }
  if (!options.json()) return put(table(rows, "rll"));
  Json json = heading(plan);
  json["kernels"] = std::move(kernels);
  return put(text(json));
}

}  // namespace

int list(const PlanOptions& options, Invocation& invocation) {
  return options.source.empty() ? list_models(options) : list_kernels(options, invocation);
}

}  // namespace fusejit::tools
