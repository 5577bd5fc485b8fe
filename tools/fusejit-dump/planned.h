// SOURCE and what becomes of it: the options that list, show, why, source and asm share, and the plan they speak of.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "scheduler/plan.h"
#include "tools/fusejit-dump/command.h"

namespace fusejit::tools {

struct PlanOptions {
  std::string source, format = "text", target = "host", rules = "all", grad, dtype;  // dtype: empty where none was said
  bool has_grad = false;
  bool json() const { return format == "json"; }
};
void add_plan_options(CLI::App& command, PlanOptions& options, bool source_required = true);
// To be called once the command line is parsed.
void note_given(const CLI::App& command, PlanOptions& options);

struct Source {
  ir::Graph graph;            // as recorded
  std::vector<bool> donated;  // by parameter
};
// A .fj file or a built-in model.
Source read_source(Invocation& invocation, const PlanOptions& options);

struct Planned {
  Source source;
  scheduler::Plan plan;
};
Planned make_plan(Invocation& invocation, const PlanOptions& options);

// Steps that --kernel selects: a number, a kernel's name, or (empty) all. UserError if there is none.
std::vector<int> select_steps(const scheduler::Plan& plan, const std::string& kernel);

// Everything a subcommand has to say, at once. FileError if standard output does not take it.
int put(const std::string& text);

}  // namespace fusejit::tools
