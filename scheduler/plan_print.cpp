// The text of a plan. Sizes are in bytes; what stands in quotes is for people, but part of the plan.
//
//   plan     := "plan" "@"name "on" "target" "rules" "=" name "{" line* "}" kernel*
//   line     := "arena" n | "bound" n | "recomputed" n "values" "in" number "of" "the" "time"
//             | "value" n "label" ":" dtype "," n "bytes" "," storage "," life
//             | "step" n "kernel" n "@"name "(" [n {"," n}] ")" ":" "reads" n "," "writes" n "," "flop" number
//               ["," "work" n "at" n] ["library" "graph" "(" n {"," n} ")"] ["of" n {"," n}] ["in" "layer"]
//               ["computes" "label" {"," "label"}] {"contraction" "sentence" schedule}
//             | "parameters" [n {"," n}] | "return" [n {"," n}]
//             | "parts" "@"name "group" ":" "sentence"
//             | "refused" code "producer" "->" "consumer" "," n "bytes" ":" "sentence"
//   storage  := "argument" n | "donated" n | "result" n | "derived" n | "arena" n ["in" n]
//             | "constant" "[" literals "]"
//   life     := "unused" | "until" step | "steps" step ".." step
//
// A schedule is written as schedule/schedule.h says. A step's name is that of its layer, whose path is behind "in", and
// "of" numbers the nodes of the recorded graph that it computes. Values, steps and kernels are numbered from 0 in
// order. A kernel that several steps run stands there once.
#include <unordered_map>

#include "ir/base/check.h"
#include "ir/base/number.h"
#include "scheduler/plan.h"

namespace fusejit::scheduler {
namespace {

std::string quoted(const std::string& text) {
  for (const char c : text)
    FJ_ASSERT(c >= ' ' && c <= '~' && c != '"', "a plan's labels are printable and without quotes: {}", text);
  return '"' + text + '"';
}

std::string quoted(const std::vector<std::string>& texts) {
  std::string all;
  for (const std::string& text : texts) all += (all.empty() ? "" : ", ") + quoted(text);
  return all;
}

std::string constant_text(const PlanValue& value) {
  std::string all;
  const auto count = static_cast<std::int64_t>(value.data.size()) * 8 / bits(value.dtype);
  for (std::int64_t i = 0; i < count; ++i)
    all += (i == 0 ? "" : ", ") + ir::literal_text(ir::load_element(value.data.data(), value.dtype, i));
  return "constant [" + all + "]";
}

std::string storage_text(const PlanValue& value) {
  switch (value.storage) {
    case Storage::argument:
      return fmt::format("argument {}", value.index);
    case Storage::donated:
      return fmt::format("donated {}", value.index);
    case Storage::result:
      return fmt::format("result {}", value.index);
    case Storage::derived:
      return fmt::format("derived {}", value.index);
    case Storage::constant:
      return constant_text(value);
    case Storage::arena:
      return fmt::format("arena {}{}", value.offset, value.inside < 0 ? "" : fmt::format(" in {}", value.inside));
  }
  return "";
}

std::string life_text(const PlanValue& value) {
  if (value.first_step >= 0) return fmt::format("steps {}..{}", value.first_step, value.last_step);
  return value.last_step >= 0 ? fmt::format("until {}", value.last_step) : "unused";
}

std::string one_line(const ir::Graph& graph) {
  std::string text;
  for (const char c : ir::print(graph)) {
    const bool blank = c == '\n' || c == ' ';
    if (!blank || (!text.empty() && text.back() != ' ')) text += blank ? ' ' : c;
  }
  text.erase(text.find_last_not_of(' ') + 1);
  return text;
}

std::string step_text(const PlanStep& step) {
  std::string text = fmt::format("@{}({}): reads {}, writes {}, flop {}", step.name, fmt::join(step.values, ", "),
                                 step.read_bytes, step.written_bytes, ir::shortest_text(step.flop));
  if (step.work_bytes > 0) text += fmt::format(", work {} at {}", step.work_bytes, step.work_offset);
  if (step.library)
    text +=
        fmt::format(" library {} ({})", quoted(one_line(step.library->graph)), fmt::join(step.library->values, ", "));
  if (!step.nodes.empty()) text += fmt::format(" of {}", fmt::join(step.nodes, ", "));
  if (!step.layer.empty()) text += " in " + quoted(step.layer);
  for (std::size_t i = 0; i < step.overwrites.size(); ++i)
    text += fmt::format("{} {} {}", i == 0 ? " over" : ",", step.overwrites[i].value, quoted(step.overwrites[i].label));
  if (!step.ops.empty()) text += " computes " + quoted(step.ops);
  return text;
}

// "return 3, 4"; without numbers no blank is left behind.
std::string numbers(std::string text, const std::vector<int>& list) {
  return list.empty() ? text : text + fmt::format(" {}", fmt::join(list, ", "));
}

// Which text of `kernels` each step runs.
struct NumberedKernels {
  std::vector<std::string> texts;
  std::vector<std::size_t> of_step;
};

NumberedKernels number_kernels(const Plan& plan) {
  NumberedKernels kernels;
  std::unordered_map<std::string, std::size_t> known;
  for (const PlanStep& step : plan.steps) {
    std::string text = ir::print(*step.kernel);
    const auto [place, fresh] = known.try_emplace(text, kernels.texts.size());
    kernels.of_step.push_back(place->second);
    if (fresh) kernels.texts.push_back(std::move(text));
  }
  return kernels;
}

std::string outline(const Plan& plan, const NumberedKernels& kernels) {
  ir::Writer out;
  out.line(fmt::format("; {} kernels, {} of them different; moves {} bytes", plan.steps.size(), kernels.texts.size(),
                       plan.ledger_bytes()));
  const std::string rules = name(plan.rules);
  out.open(fmt::format("plan @{} on {} rules={} {{", plan.name, quoted(plan.target.str()),
                       rules.starts_with('-') ? quoted(rules) : rules));
  out.line(fmt::format("arena {}", plan.arena_bytes));
  out.line(fmt::format("bound {}", plan.bound_bytes));
  if (plan.recomputed > 0)
    out.line(
        fmt::format("recomputed {} values in {} of the time", plan.recomputed, ir::shortest_text(plan.extra_time)));
  for (std::size_t v = 0; v < plan.values.size(); ++v) {
    const PlanValue& value = plan.values[v];
    out.line(fmt::format("value {} {}: {}, {} bytes, {}, {}", v, quoted(value.label), name(value.dtype), value.bytes,
                         storage_text(value), life_text(value)));
  }
  for (std::size_t s = 0; s < plan.steps.size(); ++s) {
    out.line(fmt::format("step {} kernel {} {}", s, kernels.of_step[s], step_text(plan.steps[s])));
    for (const ScheduledWork& one : plan.steps[s].schedules) {
      out.line("  " + print_work(one));
      out.line("  " + print(one.schedule));
    }
  }
  out.line(numbers("parameters", plan.parameters));
  out.line(numbers("return", plan.results));
  for (const Fallback& fallback : plan.fallbacks)
    out.line(fmt::format("parts @{} {}: {}", fallback.layer, quoted(fallback.group), quoted(fallback.why)));
  for (const Refusal& refusal : plan.refusals)
    out.line(fmt::format("refused {} {} -> {}, {} bytes: {}", name(refusal.code), quoted(refusal.producer),
                         quoted(refusal.consumer), refusal.bytes, quoted(refusal.sentence)));
  out.close();
  return std::move(out).str();
}

}  // namespace

std::string print_outline(const Plan& plan) { return outline(plan, number_kernels(plan)); }

std::string print(const Plan& plan) {
  const NumberedKernels kernels = number_kernels(plan);
  std::string text = outline(plan, kernels);
  for (const std::string& kernel : kernels.texts) text += kernel;
  return text;
}

bool operator==(const Plan& a, const Plan& b) { return print(a) == print(b); }

}  // namespace fusejit::scheduler
