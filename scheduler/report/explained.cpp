#include "scheduler/report/explained.h"

#include <set>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "ir/base/check.h"
#include "scheduler/contents.h"
#include "scheduler/uses.h"

namespace fusejit::scheduler {
namespace {

std::size_t at(int i) { return static_cast<std::size_t>(i); }

}  // namespace

std::vector<Edge> edges_of(const Plan& plan) {
  std::vector<Edge> edges;
  std::vector<int> writer(plan.values.size(), -1);  // the last one, since values are overwritten in place
  for (int s = 0; s < static_cast<int>(plan.steps.size()); ++s) {
    const PlanStep& step = plan.steps[at(s)];
    std::set<int> producers;
    for_each_use(step, [&](int value, ir::MemKind kind) {
      const int producer = writer[at(value)];
      if (kind != ir::MemKind::write && producer >= 0 && producers.insert(producer).second)
        edges.push_back({producer, s, value});
    });
    for_each_use(step, [&](int value, ir::MemKind kind) {
      if (kind != ir::MemKind::read) writer[at(value)] = s;
    });
  }
  return edges;
}

std::vector<Edge> unexplained_edges(const Plan& plan) {
  std::unordered_map<std::string_view, std::vector<int>> steps_of;  // that compute what is called so
  for (int s = 0; s < static_cast<int>(plan.steps.size()); ++s) {
    for (const std::string& op : plan.steps[at(s)].ops) steps_of[op].push_back(s);
  }
  std::set<std::pair<int, int>> explained;
  for (const Refusal& refusal : plan.refusals) {
    for (const int producer : steps_of[refusal.producer]) {
      for (const int consumer : steps_of[refusal.consumer]) explained.emplace(producer, consumer);
    }
  }
  std::vector<Edge> edges = edges_of(plan);
  std::erase_if(edges, [&](const Edge& edge) { return explained.contains({edge.producer, edge.consumer}); });
  return edges;
}

void expect_explained(const Plan& plan) {
  const std::vector<Edge> edges = unexplained_edges(plan);
  if (edges.empty()) return;
  const Edge& first = edges[0];
  const auto said = [&](int s) {
    return fmt::format("step {} @{} ({})", s, plan.steps[at(s)].name, fmt::join(plan.steps[at(s)].ops, ", "));
  };
  throw InternalError(fmt::format("plan @{}: {} of {} edges have no refusal: {} reads {} of {}", plan.name,
                                  edges.size(), edges_of(plan).size(), said(first.consumer),
                                  Contents(plan, plan.steps[at(first.consumer)])[first.value], said(first.producer)));
}

}  // namespace fusejit::scheduler
