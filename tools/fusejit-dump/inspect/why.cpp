// why: every pair that was not fused, with its reason and bytes, largest first.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "tools/fusejit-dump/planned.h"
#include "tools/fusejit-dump/rows.h"
#include "tools/fusejit-dump/table.h"

namespace fusejit::tools {
namespace {

struct Total {
  std::int64_t pairs = 0, bytes = 0;
};

// "%70 maximum" -> "maximum"
std::string op_of(const std::string& label) { return label.substr(label.rfind(' ') + 1); }

// Pairs of the same ops that are apart for the same reason.
struct Kind {
  Total total;
  const scheduler::Refusal* largest = nullptr;
};
std::vector<Kind> kinds_of(const std::vector<scheduler::Refusal>& ranked) {
  std::map<std::tuple<scheduler::RefusalCode, std::string, std::string>, Kind> known;
  for (const scheduler::Refusal& refusal : ranked) {
    Kind& kind = known[{refusal.code, op_of(refusal.producer), op_of(refusal.consumer)}];
    ++kind.total.pairs, kind.total.bytes += refusal.bytes;
    if (!kind.largest) kind.largest = &refusal;
  }
  std::vector<Kind> kinds;
  for (const auto& [key, kind] : known) kinds.push_back(kind);
  std::stable_sort(kinds.begin(), kinds.end(),
                   [](const Kind& a, const Kind& b) { return a.total.bytes > b.total.bytes; });
  return kinds;
}

int summary(const WhyOptions& options, const scheduler::Plan& plan, const std::vector<scheduler::Refusal>& refusals) {
  Json list = Json::array();
  std::vector<std::vector<std::string>> rows;
  for (const Kind& kind : kinds_of(refusals)) {
    const scheduler::Refusal& one = *kind.largest;
    const std::string code(name(one.code)), producer = op_of(one.producer), consumer = op_of(one.consumer);
    list.push_back({{"bytes", kind.total.bytes},
                    {"pairs", kind.total.pairs},
                    {"code", code},
                    {"producer", producer},
                    {"consumer", consumer},
                    {"largest", to_json(one)}});
    rows.push_back({grouped(kind.total.bytes), fmt::format("{} pairs", kind.total.pairs), code, producer, "->",
                    consumer, one.sentence});
  }
  if (options.json()) {
    Json json = heading(plan);
    json["kinds"] = std::move(list);
    return put(text(json));
  }
  return put(fmt::format("@{} on {}, rules={}: {} pairs not fused, of {} kinds\n", plan.name, plan.target.str(),
                         name(plan.rules), refusals.size(), rows.size()) +
             table(rows, "rrlllll"));
}

}  // namespace

int why(const WhyOptions& options, Invocation& invocation) {
  const scheduler::Plan plan = make_plan(invocation, options).plan;
  const std::vector<scheduler::Refusal> refusals = ranked_refusals(plan);
  if (options.summary) return summary(options, plan, refusals);
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
