#include "tools/fusejit-dump/measure/compared.h"

#include <fmt/format.h>

#include <algorithm>

namespace fusejit::tools {
namespace {

struct Pair {
  std::size_t step;  // of the plan with other schedules
  const Times *chosen, *replaced;
  double ratio() const {
    Times ratios;
    for (std::size_t i = 0; i < chosen->milliseconds.size(); ++i)
      ratios.milliseconds.push_back(replaced->milliseconds[i] / std::max(chosen->milliseconds[i], 1e-9));
    return ratios.median();
  }
};

bool is_same_work(const scheduler::PlanStep& a, const scheduler::PlanStep& b) {
  return a.ops == b.ops && std::equal(a.schedules.begin(), a.schedules.end(), b.schedules.begin(), b.schedules.end(),
                                      [](const auto& one, const auto& other) { return one.work == other.work; });
}

// Steps may be numbered otherwise: what one schedule has laid out beforehand another reads as it is.
std::vector<Pair> pairs(const Timed& chosen, const Timed& replaced) {
  std::vector<Pair> all;
  for (std::size_t s = 0; s < replaced.plan.steps.size(); ++s) {
    const scheduler::PlanStep& step = replaced.plan.steps[s];
    const auto was = std::find_if(chosen.plan.steps.begin(), chosen.plan.steps.end(),
                                  [&](const scheduler::PlanStep& other) { return is_same_work(other, step); });
    if (was == chosen.plan.steps.end() || was->schedules == step.schedules) continue;
    const auto before = static_cast<std::size_t>(was - chosen.plan.steps.begin());
    all.push_back({s, &chosen.measured.steps[before], &replaced.measured.steps[s]});
  }
  return all;
}

}  // namespace

std::string compared_text(const Timed& chosen, const Timed& replaced) {
  std::vector<std::vector<std::string>> cells = {{"#", "kernel", "chosen ms", "ms", "ratio"}};
  for (const Pair& pair : pairs(chosen, replaced))
    cells.push_back({std::to_string(pair.step), replaced.plan.steps[pair.step].name,
                     fmt::format("{:.4f}", pair.chosen->median()), fmt::format("{:.4f}", pair.replaced->median()),
                     fmt::format("{:.3f}", pair.ratio())});
  const Pair whole{0, &chosen.measured.whole, &replaced.measured.whole};
  return std::string("beside the chosen schedules, a step of each in turn; ratios are medians of pairs\n") +
         (cells.size() > 1 ? table(cells, "rlrrr") : "no schedule differs from the chosen one\n") +
         fmt::format("a step takes {:.3f} ms, with the chosen ones {:.3f} ms, ratio {:.3f}\n", whole.replaced->median(),
                     whole.chosen->median(), whole.ratio());
}

Json compared_json(const Timed& chosen, const Timed& replaced) {
  const Pair whole{0, &chosen.measured.whole, &replaced.measured.whole};
  Json json = {{"median_ms", whole.chosen->median()}, {"ratio", whole.ratio()}, {"kernels", Json::array()}};
  for (const Pair& pair : pairs(chosen, replaced))
    json["kernels"].push_back({{"index", pair.step},
                               {"name", replaced.plan.steps[pair.step].name},
                               {"chosen_median_ms", pair.chosen->median()},
                               {"median_ms", pair.replaced->median()},
                               {"ratio", pair.ratio()}});
  return json;
}

}  // namespace fusejit::tools
