// why: every pair that was not fused, with its reason and bytes, largest first.
#include <fmt/format.h>

#include <map>

#include "tools/fusejit-dump/planned.h"
#include "tools/fusejit-dump/rows.h"
#include "tools/fusejit-dump/table.h"

namespace fusejit::tools {
namespace {

struct Total {
  std::int64_t pairs = 0, bytes = 0;
};

}  // namespace

int why(const PlanOptions& options, Invocation& invocation) {
  const scheduler::Plan plan = make_plan(invocation, options).plan;
  const std::vector<scheduler::Refusal> refusals = ranked_refusals(plan);
  std::map<scheduler::RefusalCode, Total> totals;
  Json list = Json::array();
  std::vector<std::vector<std::string>> rows;
  for (const scheduler::Refusal& refusal : refusals) {
    Total& total = totals[refusal.code];
    ++total.pairs, total.bytes += refusal.bytes;
    list.push_back(to_json(refusal));
    rows.push_back({grouped(refusal.bytes), std::string(name(refusal.code)), refusal.producer, "->", refusal.consumer,
                    refusal.sentence});
  }
  if (options.json()) {
    Json json = heading(plan);
    json["refusals"] = std::move(list);
    json["by_code"] = Json::object();
    for (const auto& [code, total] : totals)
      json["by_code"][std::string(name(code))] = {{"pairs", total.pairs}, {"bytes", total.bytes}};
    return put(text(json));
  }
  std::vector<std::vector<std::string>> sums;
  for (const auto& [code, total] : totals)
    sums.push_back({grouped(total.bytes), std::string(name(code)), fmt::format("{} pairs", total.pairs)});
  return put(fmt::format("@{} on {}, rules={}: {} pairs not fused\n", plan.name, plan.target.str(), name(plan.rules),
                         refusals.size()) +
             table(rows, "rlllll") + (sums.empty() ? "" : "in all\n" + table(sums, "rll")));
}

}  // namespace fusejit::tools
