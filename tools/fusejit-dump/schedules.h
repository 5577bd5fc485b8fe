// Schedules as a text to be edited: what `source --stage schedule` writes, and what --schedule reads and has built in
// place of the chosen ones (docs/schedules.md).
//
//   file  := entry entry*                                  ; comments end with the line
//   entry := ["step" (number | "@"name)] ("contraction" | "domain") "text" schedule
//
// What follows a step is for that one, as it is numbered and called in the plan with the chosen schedules; what stands
// before the first step is for every step that does this work, and has none of its own in the file.
#pragma once

#include <string>
#include <vector>

#include "ir/base/text.h"
#include "scheduler/make_plan.h"
#include "tools/fusejit-dump/command.h"

namespace fusejit::tools {

struct WantedSchedule {
  std::string step;  // its number or its name; empty: every one
  scheduler::ScheduledWork wanted;
  ir::Position step_at, at;
};
using ScheduleFile = std::vector<WantedSchedule>;

// An empty path: none. ParseErrors are of this file from then on.
ScheduleFile read_schedules(Invocation& invocation, const std::string& path);
// The schedules of these steps; nothing of one that a library does.
std::string print_schedules(const scheduler::Plan& plan, const std::vector<int>& steps);
// Those of a step as comment lines.
std::string schedule_lines(const scheduler::PlanStep& step, const char* comment);

// What has the file's schedules built in a plan of this graph. Nothing for no file. ParseError where an entry is for no
// work of the plan, or for one that has another already.
scheduler::Reschedule reschedule_of(const ScheduleFile& file, const ir::Graph& graph,
                                    const scheduler::PlanOptions& options);

}  // namespace fusejit::tools
