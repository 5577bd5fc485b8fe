// diff: what changed between the plans of two SOURCEs, or of one for two targets. Exit code 3 if anything did.
#include <fmt/format.h>

#include <cmath>

#include "tools/fusejit-dump/compare/plan_diff.h"
#include "tools/fusejit-dump/planned.h"
#include "tools/fusejit-dump/rows.h"
#include "tools/fusejit-dump/table.h"

namespace fusejit::tools {
namespace {

struct Figure {
  const char* name;
  std::int64_t before, after;
};

struct Side {
  std::string source;
  scheduler::Plan plan;
};

Side side_of(Invocation& invocation, const DiffOptions& options, const DiffSide& own) {
  PlanOptions side = options;
  side.source = own.source;
  if (!own.target.empty()) side.target = own.target;
  if (own.rules) side.rules = *own.rules;
  if (!own.dtype.empty()) side.dtype = own.dtype;
  if (!own.schedule.empty()) side.schedule = own.schedule;
  return {side.source, make_plan(invocation, side).plan};
}

std::vector<Figure> figures(const scheduler::Plan& a, const scheduler::Plan& b) {
  const auto launches = [](const scheduler::Plan& plan) { return static_cast<std::int64_t>(plan.steps.size()); };
  const auto flop = [](const scheduler::Plan& plan) {
    double sum = 0;
    for (const scheduler::PlanStep& step : plan.steps) sum += step.flop;
    return std::llround(sum);
  };
  return {{"launches", launches(a), launches(b)},
          {"different kernels", different(rows_of(a, false)), different(rows_of(b, false))},
          {"ledger bytes", a.ledger_bytes(), b.ledger_bytes()},
          {"bound bytes", a.bound_bytes, b.bound_bytes},
          {"arena bytes", a.arena_bytes, b.arena_bytes},
          {"flop", flop(a), flop(b)}};
}

std::int64_t bytes_of(const scheduler::PlanStep& step) { return step.read_bytes + step.written_bytes; }

std::string signed_text(std::int64_t number) { return (number > 0 ? "+" : "") + grouped(number); }

std::string steps_text(const char* title, const scheduler::Plan& plan, const std::vector<int>& steps) {
  if (steps.empty()) return "";
  std::vector<std::vector<std::string>> rows;
  for (const int s : steps) {
    const scheduler::PlanStep& step = plan.steps[static_cast<std::size_t>(s)];
    rows.push_back({"", std::to_string(s), step.name, grouped(bytes_of(step)) + " bytes",
                    fmt::format("{}", fmt::join(step.ops, ", "))});
  }
  return fmt::format("{}\n", title) + table(rows, "lrlrl");
}

std::string diff_text(const Side& before, const Side& after, const PlanDiff& diff) {
  const scheduler::Plan &a = before.plan, &b = after.plan;
  std::string out = fmt::format("old: {}: @{} on {}, rules={}\nnew: {}: @{} on {}, rules={}\n", before.source, a.name,
                                a.target.str(), name(a.rules), after.source, b.name, b.target.str(), name(b.rules));
  std::vector<std::vector<std::string>> rows = {{"", "old", "new", "change"}};
  for (const Figure& f : figures(a, b))
    rows.push_back({f.name, grouped(f.before), grouped(f.after), signed_text(f.after - f.before)});
  std::size_t changed = 0;
  for (const ChangedKernel& kernel : diff.changed) changed += kernel.steps.size();
  out += table(rows, "lrrr") + fmt::format("kernels: {} unchanged, {} changed, {} removed, {} added\n",
                                           diff.unchanged.size(), changed, diff.removed.size(), diff.added.size());
  out += steps_text("removed", a, diff.removed) + steps_text("added", b, diff.added);
  for (const ChangedKernel& kernel : diff.changed) {
    for (const auto& [s, t] : kernel.steps) {
      const scheduler::PlanStep &was = a.steps[static_cast<std::size_t>(s)], &is = b.steps[static_cast<std::size_t>(t)];
      out += fmt::format("changed {} {} -> {} {}, {} bytes\n", s, was.name, t, is.name,
                         signed_text(bytes_of(is) - bytes_of(was)));
    }
    out += kernel.lines;
  }
  if (!diff.outline.empty()) out += "every kernel is as it was; the plans differ\n" + diff.outline;
  return out;
}

Json side_json(const Side& side) {
  Json json = {{"source", side.source}};
  json.update(heading(side.plan));
  return json;
}

Json steps_json(const scheduler::Plan& plan, const std::vector<int>& steps) {
  Json json = Json::array();
  for (const int s : steps) {
    const scheduler::PlanStep& step = plan.steps[static_cast<std::size_t>(s)];
    json.push_back({{"index", s}, {"name", step.name}, {"ops", step.ops}, {"bytes", bytes_of(step)}});
  }
  return json;
}

std::string diff_json(const Side& before, const Side& after, const PlanDiff& diff) {
  Json json = {{"old", side_json(before)}, {"new", side_json(after)}, {"same", diff.none()}};
  for (const Figure& f : figures(before.plan, after.plan))
    json["figures"][f.name] = {{"old", f.before}, {"new", f.after}, {"change", f.after - f.before}};
  json["unchanged"] = diff.unchanged;
  json["removed"] = steps_json(before.plan, diff.removed);
  json["added"] = steps_json(after.plan, diff.added);
  json["changed"] = Json::array();
  for (const ChangedKernel& kernel : diff.changed)
    json["changed"].push_back({{"steps", kernel.steps}, {"lines", kernel.lines}});
  json["outline"] = diff.outline;
  return text(json);
}

}  // namespace

int diff(const DiffOptions& options, Invocation& invocation) {
  const Side before = side_of(invocation, options, options.before), after = side_of(invocation, options, options.after);
  const PlanDiff diff = diff_of(before.plan, after.plan);
  put(options.json() ? diff_json(before, after, diff) : diff_text(before, after, diff));
  return diff.none() ? kDone : kDifferent;
}

}  // namespace fusejit::tools
