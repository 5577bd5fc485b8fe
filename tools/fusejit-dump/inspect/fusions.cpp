// fusions: what was fused, a line for each kernel that computes several recorded ops, and what that saved.
#include "scheduler/report/fusions.h"

#include "tools/fusejit-dump/planned.h"
#include "tools/fusejit-dump/table.h"

namespace fusejit::tools {
namespace {

Json fusion_json(const scheduler::Fusion& fusion) {
  Json parts = Json::object();
  for (const auto& [key, value] : fusion.parts) {
    parts[key] = Json::array();
    for (std::size_t begin = 0, end = 0; end != std::string::npos; begin = end + 1) {
      end = value.find(',', begin);
      parts[key].push_back(value.substr(begin, end - begin));
    }
  }
  return {{"step", fusion.step},
          {"kernel", fusion.kernel},
          {"parts", parts},
          {"ops", fusion.ops},
          {"saved_bytes", fusion.saved_bytes}};
}

}  // namespace

int fusions(const PlanOptions& options, Invocation& invocation) {
  const Planned planned = make_plan(invocation, options);
  const scheduler::Fusions fusions = scheduler::fusions_of(planned.plan, planned.source.graph);
  if (!options.json()) {
    std::string lines;
    for (const scheduler::Fusion& fusion : fusions.list) lines += line_of(fusion) + "\n";
    return put(lines + summary_of(fusions) + "\n");
  }
  Json json = heading(planned.plan);
  json["fusions"] = Json::array();
  for (const scheduler::Fusion& fusion : fusions.list) json["fusions"].push_back(fusion_json(fusion));
  json["fused_ops"] = fusions.fused_ops;
  json["recorded_ops"] = fusions.recorded_ops;
  json["kernels"] = fusions.kernels;
  json["saved_bytes"] = fusions.saved_bytes;
  return put(text(json));
}

}  // namespace fusejit::tools
