#include "tools/fusejit-dump/schedules.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <sstream>

#include "frontend/io/files.h"
#include "ir/kernel/text/parser.h"
#include "scheduler/schedule/domain.h"
#include "tools/fusejit-dump/planned.h"

namespace fusejit::tools {
namespace {

constexpr std::size_t kMostBytes = std::size_t{1} << 20;

ScheduleFile parse(std::string_view text) {
  if (text.size() > kMostBytes) throw ParseError(1, 1, "a file of schedules has at most 1 MiB");
  ir::TokenReader tokens(text);
  ScheduleFile file;
  WantedSchedule next;
  do {
    if (tokens.is("step")) {
      tokens.take();
      const ir::Token step = tokens.take();
      if (step.kind != ir::TokenKind::number && step.kind != ir::TokenKind::at)
        ir::Lexer::fail(step, "expected the number of a step or its @name");
      next.step = step.text, next.step_at = step.at;
    }
    next.at = tokens.peek().at;
    next.wanted = scheduler::parse_scheduled_work(tokens);
    file.push_back(next);
  } while (tokens.peek().kind != ir::TokenKind::end);
  return file;
}

// Steps that an entry is for, as far as the file says.
std::vector<int> steps_of(const WantedSchedule& entry, const scheduler::Plan& plan) {
  try {
    return select_steps(plan, entry.step);
  } catch (const UserError& error) {
    ir::Lexer::fail(entry.step_at, error.what());
  }
}

// Which op's work is done how.
using Replaced = std::map<std::pair<std::string, std::string>, const WantedSchedule*>;

void replace(Replaced& replaced, const WantedSchedule& entry, const scheduler::Plan& plan) {
  bool fits = false, has_library = false;
  for (const int s : steps_of(entry, plan)) {
    const scheduler::PlanStep& step = plan.steps[static_cast<std::size_t>(s)];
    if (std::none_of(step.schedules.begin(), step.schedules.end(), [&](const scheduler::ScheduledWork& one) {
          return one.kind == entry.wanted.kind && one.work == entry.wanted.work;
        }))
      continue;
    if (step.library) {
      has_library = true;
      continue;
    }
    fits = true;
    for (const std::string& op : step.ops) {  // one of them is what Reschedule asks with
      const WantedSchedule*& known = replaced[{op, entry.wanted.work}];
      if (known != nullptr && known->step.empty() == entry.step.empty() && known->wanted != entry.wanted)
        ir::Lexer::fail(entry.at, fmt::format("step {} has another schedule for this {} in line {}", s,
                                              name(entry.wanted.kind), known->at.line));
      if (known == nullptr || known->step.empty()) known = &entry;
    }
  }
  if (fits) return;
  const std::string who = entry.step.empty() ? fmt::format("no step of @{}", plan.name) : "step " + entry.step;
  ir::Lexer::fail(entry.at, has_library
                                ? "a library computes this contraction, without a schedule"
                                : fmt::format("{} {} this {}; --stage schedule prints those there are", who,
                                              entry.step.empty() ? "has" : "does not have", name(entry.wanted.kind)));
}

}  // namespace

ScheduleFile read_schedules(Invocation& invocation, const std::string& path) {
  if (path.empty()) return {};
  const std::vector<std::byte> bytes = io::read_beginning(path, kMostBytes + 1);
  invocation.source = path;
  return parse({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
}

std::string print_schedules(const scheduler::Plan& plan, const std::vector<int>& steps) {
  std::string text;
  for (const int s : steps) {
    const scheduler::PlanStep& step = plan.steps[static_cast<std::size_t>(s)];
    if (step.library || step.schedules.empty()) continue;
    text += fmt::format("{}step {}  ; {}: {}\n", text.empty() ? "" : "\n", s, step.name, fmt::join(step.ops, ", "));
    for (const scheduler::ScheduledWork& one : step.schedules) text += print_lines(one);
  }
  return text;
}

std::string schedule_lines(const scheduler::PlanStep& step, const char* comment) {
  std::string text;
  if (step.library) return text;
  for (const scheduler::ScheduledWork& one : step.schedules) {
    std::istringstream lines(print_lines(one));
    for (std::string line; std::getline(lines, line);) text += fmt::format("{}   {}\n", comment, line);
  }
  return text;
}

scheduler::Reschedule reschedule_of(const ScheduleFile& file, const ir::Graph& graph,
                                    const scheduler::PlanOptions& options) {
  if (file.empty()) return {};
  const scheduler::Plan chosen = scheduler::make_plan(graph, options);
  Replaced replaced;
  for (const WantedSchedule& entry : file) replace(replaced, entry, chosen);
  std::map<std::pair<std::string, std::string>, scheduler::Schedule> schedules;
  for (const auto& [of, entry] : replaced) schedules.emplace(of, entry->wanted.schedule);
  const auto wanted = [schedules = std::move(schedules)](const std::string& op, const auto& work,
                                                         const scheduler::Schedule& otherwise) {
    const auto found = schedules.find({op, str(work)});
    return found == schedules.end() ? otherwise : found->second;
  };
  const auto anchor = [wanted](const std::string& op, const scheduler::AnchorChoice& choice) {
    return wanted(op, choice.contraction, choice.chosen());
  };
  return {anchor, wanted};
}

}  // namespace fusejit::tools
