#include "runtime/dump.h"

#include <cstdio>
#include <cstdlib>

namespace fusejit::runtime {
namespace {

bool shows(std::string_view stage) {
  const char* stages = std::getenv("FUSEJIT_DUMP");
  return stages != nullptr && *stages != '\0' && std::string_view(stages).find(stage) != std::string_view::npos;
}

void put(const std::string& text) { std::fputs(text.c_str(), stderr); }

}  // namespace

void dump(const ir::Graph& graph) {
  if (shows("graph")) put(ir::print(graph) + "\n");
}

void dump(const scheduler::Plan& plan) {
  if (shows("plan")) put(scheduler::print_outline(plan));
  if (!shows("kernel")) return;
  for (const scheduler::PlanStep& step : plan.steps) put("; " + step.name + "\n" + ir::print(*step.kernel));
}

void dump_failed(const ir::Graph& graph) {
  if (shows("") && !shows("graph")) put(ir::print(graph) + "\n");
}

}  // namespace fusejit::runtime
