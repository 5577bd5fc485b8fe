#include "scheduler/report/explained.h"

#include <algorithm>
#include <map>
#include <set>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "ir/base/at.h"
#include "ir/base/check.h"
#include "ir/kernel/cost/cost.h"
#include "scheduler/contents.h"
#include "scheduler/uses.h"

namespace fusejit::scheduler {
namespace {

// found(concatenation, read, written, bytes written) for each in whose memory the step reads channels, or writes them.
template <class F>
void for_each_part(const Plan& plan, const PlanStep& step, const std::vector<bool>& in_parts, F&& found) {
  if (std::none_of(step.values.begin(), step.values.end(), [&](int v) { return in_parts[at(v)]; })) return;
  std::map<ir::MemId, int> value_of;
  auto value = step.values.begin();
  for (const ir::KernelParam& param : step.kernel->params)
    if (param.memory >= 0) value_of[param.memory] = *value++;
  for (const ir::MemoryTraffic& one : ir::traffic(*step.kernel)) {
    const auto of = value_of.find(one.memory);
    if (of == value_of.end() || !in_parts[at(of->second)]) continue;
    const PlanValue& within = plan.values[at(of->second)];
    const int whole = within.inside >= 0 ? within.inside : of->second;
    const std::int64_t first = (within.offset - plan.values[at(whole)].offset) * 8 / bits(within.dtype);
    // Words have two elements each.
    const std::int64_t elements = bits(step.kernel->memories[at(one.memory)].dtype) / bits(within.dtype);
    const auto channels = [&](const ir::Columns& c) {
      return ir::Columns{first + c.low * elements, first + (c.high + 1) * elements - 1};
    };
    found(whole, channels(one.read), channels(one.written), one.written_bytes);
  }
}

}  // namespace

std::vector<bool> values_in_parts(const Plan& plan) {
  std::vector<bool> in_parts(plan.values.size());
  for (std::size_t v = 0; v < in_parts.size(); ++v) {
    const int around = plan.values[v].inside;
    if (around >= 0) in_parts[v] = in_parts[at(around)] = true;
  }
  return in_parts;
}

std::vector<Edge> edges_of(const Plan& plan) {
  std::vector<Edge> edges;
  std::vector<int> writer(plan.values.size(), -1);  // the last one, since values are overwritten in place
  const std::vector<bool> in_parts = values_in_parts(plan);
  struct Part {
    int step;
    ir::Columns channels;
    std::int64_t bytes;
  };
  std::map<int, std::vector<Part>> writers;  // of a concatenation
  for (int s = 0; s < static_cast<int>(plan.steps.size()); ++s) {
    const PlanStep& step = plan.steps[at(s)];
    std::set<int> producers;
    for_each_use(step, [&](int value, ir::MemKind kind) {
      if (in_parts[at(value)]) return;
      const int producer = writer[at(value)];
      if (kind != ir::MemKind::write && producer >= 0 && producers.insert(producer).second)
        edges.push_back({producer, s, value, plan.values[at(value)].bytes});
    });
    for_each_part(plan, step, in_parts,
                  [&](int value, const ir::Columns& read, const ir::Columns& written, std::int64_t bytes) {
                    for (const Part& part : writers[value]) {
                      if (part.channels.meet(read) && producers.insert(part.step).second)
                        edges.push_back({part.step, s, value, part.bytes});
                    }
                    if (written.high >= written.low) writers[value].push_back({s, written, bytes});
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
