#include "tools/fusejit-dump/compare/plan_diff.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <map>

#include "ir/kernel/kernel.h"
#include "tools/fusejit-dump/compare/line_diff.h"

namespace fusejit::tools {
namespace {

using Trait = std::function<std::string(const scheduler::PlanStep&)>;

// All that decides about a step's code but the target.
std::string text_of(const scheduler::PlanStep& step) {
  std::string text = ir::kernel_key_text(*step.kernel);
  if (step.library) text += "in one call of a library:\n" + ir::print(step.library->graph);
  return text;
}

const scheduler::PlanStep& step_of(const scheduler::Plan& plan, int s) {
  return plan.steps[static_cast<std::size_t>(s)];
}

// Takes out of both lists, in order, the steps of which the trait is the same.
std::vector<std::pair<int, int>> matched(const scheduler::Plan& before, const scheduler::Plan& after,
                                         std::vector<int>& old_steps, std::vector<int>& new_steps, const Trait& trait) {
  std::map<std::string, std::vector<int>> waiting;  // last first
  for (auto s = new_steps.rbegin(); s != new_steps.rend(); ++s) waiting[trait(step_of(after, *s))].push_back(*s);
  std::vector<std::pair<int, int>> pairs;
  std::vector<int> left;
  for (const int s : old_steps) {
    std::vector<int>& same = waiting[trait(step_of(before, s))];
    if (same.empty()) {
      left.push_back(s);
    } else {
      pairs.emplace_back(s, same.back());
      same.pop_back();
    }
  }
  old_steps = std::move(left);
  new_steps.clear();
  for (const auto& [key, steps] : waiting) new_steps.insert(new_steps.end(), steps.begin(), steps.end());
  std::sort(new_steps.begin(), new_steps.end());
  return pairs;
}

// The plan without what people called it and without the names of its kernels.
std::string outline_of(scheduler::Plan plan) {
  plan.name = "plan";
  return scheduler::print_outline(plan);
}

}  // namespace

PlanDiff diff_of(const scheduler::Plan& before, const scheduler::Plan& after) {
  PlanDiff diff;
  for (std::size_t s = 0; s < before.steps.size(); ++s) diff.removed.push_back(static_cast<int>(s));
  for (std::size_t s = 0; s < after.steps.size(); ++s) diff.added.push_back(static_cast<int>(s));
  const auto match = [&](const Trait& trait) { return matched(before, after, diff.removed, diff.added, trait); };
  diff.unchanged = match(text_of);
  std::vector<std::pair<int, int>> changed =
      match([](auto& step) { return fmt::format("{}", fmt::join(step.ops, ",")); });
  const std::vector<std::pair<int, int>> named = match([](auto& step) { return step.name; });
  changed.insert(changed.end(), named.begin(), named.end());
  std::map<std::string, std::size_t> known;
  for (const auto& [old_step, new_step] : changed) {
    std::string lines = line_diff(text_of(step_of(before, old_step)), text_of(step_of(after, new_step)));
    const auto [at, is_new] = known.emplace(lines, diff.changed.size());
    if (is_new) diff.changed.push_back({{}, std::move(lines)});
    diff.changed[at->second].steps.emplace_back(old_step, new_step);
  }
  if (diff.none()) diff.outline = line_diff(outline_of(before), outline_of(after));
  return diff;
}

}  // namespace fusejit::tools
