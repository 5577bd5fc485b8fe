// SOURCE and what becomes of it: the plan that list, show, why, source and asm speak of.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "scheduler/plan.h"
#include "tools/fusejit-dump/command.h"
#include "tools/fusejit-dump/schedules.h"

namespace fusejit::tools {

struct Source {
  ir::Graph graph;                        // as recorded
  std::vector<bool> donated, fixed = {};  // by parameter; empty: none
  ScheduleFile schedules = {};            // to be built in place of the chosen ones
};
// A .fj file, a built-in model, or what a run planned: "runs.fjs", of several signatures "runs.fjs#2"; and --schedule.
Source read_source(Invocation& invocation, const PlanOptions& options);

struct Planned {
  Source source;
  scheduler::PlanOptions wanted;
  scheduler::Plan plan;
};
Planned make_plan(Invocation& invocation, const PlanOptions& options);
Planned make_plan(Source source, const PlanOptions& options);
// What the plan is asked for.
scheduler::PlanOptions wanted_plan(const Source& source, const PlanOptions& options);

// Steps that --kernel selects: a number, a kernel's name, or (empty) all. UserError if there is none.
std::vector<int> select_steps(const scheduler::Plan& plan, const std::string& kernel);

// Everything a subcommand has to say, at once. FileError if standard output does not take it.
int put(const std::string& text);
// The same into a file; an empty path is standard output.
int put_into(const std::string& path, const std::string& text);

}  // namespace fusejit::tools
