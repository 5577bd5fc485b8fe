// source and asm: what a SOURCE looks like at each stage on its way to machine code.
#include <fmt/format.h>

#include <sstream>

#include "ir/passes/passes.h"
#include "scheduler/make_plan.h"
#include "scheduler/names/steps.h"
#include "tools/fusejit-dump/inspect/standalone.h"
#include "tools/fusejit-dump/library_call.h"
#include "tools/fusejit-dump/machine_code.h"
#include "tools/fusejit-dump/planned.h"
#include "tools/fusejit-dump/rows.h"
#include "tools/fusejit-dump/table.h"

namespace fusejit::tools {
namespace {

// Of one step at a stage that has a text for each.
std::string step_text(const std::string& stage, const scheduler::Plan& plan, int s, const ParameterNames& called) {
  const scheduler::PlanStep& step = plan.steps[static_cast<std::size_t>(s)];
  const ir::Kernel& kernel = *step.kernel;
  const bool cuda = plan.target.isa == Isa::cuda;
  if (stage == "schedule") return print_schedules(plan, {s});
  if (stage == "kernel") return legend(plan, step, ";", called) + ir::print(kernel);
  if (stage == "cuda" && cuda) return legend(plan, step, "//", called) + codegen::cuda::emit(kernel, {}, called).text;
  const std::string text = code_text(stage, kernel, plan.target);
  const char* const comment = stage == "llvm" ? ";" : cuda ? "//" : "#";
  return call_lines(plan, step, comment) + schedule_lines(step, comment) + text;
}

// The graph with what the user wrote behind every node that does not say it itself. Still a text that can be read.
std::string with_origins(const ir::Graph& graph) {
  std::istringstream lines(ir::print(graph));
  std::string text;
  auto node = graph.nodes().begin();
  for (std::string line; std::getline(lines, line); text += line + "\n") {
    if (!line.starts_with("  %")) continue;
    const std::string written = scheduler::written_op(**node);
    if (written != ir::name((*node)->op)) line += "  ; " + written;
    ++node;
  }
  return text;
}

int put_whole(const TextOptions& options, const std::string& graph, const Target& target, const std::string& whole) {
  if (!options.json()) return put(whole);
  return put(text({{"graph", graph},
                   {"target", target.str()},
                   {"rules", name(options.rules)},
                   {"stage", options.stage},
                   {"text", whole}}));
}

int put_kernels(const TextOptions& options, Invocation& invocation) {
  const Planned planned = make_plan(invocation, options);
  const scheduler::Plan& plan = planned.plan;
  const std::vector<ParameterNames> names = parameter_names(planned);
  std::string all;
  Json kernels = Json::array();
  for (const int s : select_steps(plan, options.kernel)) {
    const scheduler::PlanStep& step = plan.steps[static_cast<std::size_t>(s)];
    std::string one = step_text(options.stage, plan, s, names[static_cast<std::size_t>(s)]);
    if (!options.json()) all += (all.empty() || one.empty() ? "" : "\n") + one;
    if (options.json())
      kernels.push_back({{"index", s}, {"name", step.name}, {"call", call_json(plan, step)}, {"text", std::move(one)}});
  }
  if (!options.json()) return put(all);
  Json json = heading(plan);
  json["stage"] = options.stage;
  json["kernels"] = std::move(kernels);
  return put(text(json));
}

int put_standalone(const TextOptions& options, Invocation& invocation) {
  if (options.stage != "cuda" && options.stage != "llvm")
    throw UsageError{
        fmt::format("--standalone: stage {} is nothing that a compiler takes; cuda and llvm are", options.stage)};
  const Planned planned = make_plan(invocation, options);
  const scheduler::Plan& plan = planned.plan;
  const bool cuda = plan.target.isa == Isa::cuda;
  check_stage(options.stage, plan.target);
  const std::vector<DifferentKernel> kernels = different_kernels(planned, select_steps(plan, options.kernel));
  return put_whole(options, plan.name, plan.target,
                   cuda ? standalone_cuda(plan, kernels) : standalone_llvm(plan, kernels));
}

}  // namespace

int put_stage(const TextOptions& given, Invocation& invocation) {
  TextOptions options = given;
  if (options.stage.empty())
    options.stage = parse_target(options.target).isa == Isa::cuda ? "cuda" : options.standalone ? "llvm" : "kernel";
  if (options.standalone) return put_standalone(options, invocation);
  const bool of_graph = options.stage == "graph" || options.stage == "optimised";
  if (!of_graph && options.stage != "plan") return put_kernels(options, invocation);
  if (!options.kernel.empty()) throw UsageError{fmt::format("--kernel: stage {} is not a kernel's", options.stage)};
  const Target target = parse_target(options.target);
  if (options.stage == "plan") {
    const scheduler::Plan plan = make_plan(invocation, options).plan;
    return put_whole(options, plan.name, plan.target, scheduler::print_outline(plan));
  }
  const Source source = read_source(invocation, options);
  const std::string whole = with_origins(
      options.stage == "graph" ? source.graph : scheduler::optimised(source.graph, wanted_plan(source, options)));
  return put_whole(options, source.graph.name(), target, whole);
}

}  // namespace fusejit::tools
