#include "runtime/plan_store.h"

#include "ir/base/check.h"

namespace fusejit::runtime {
namespace {

disk::CacheKey key_of(const ir::Graph& graph, const scheduler::ScheduleOptions& wanted, const std::string& library) {
  return disk::plan_key(graph, {wanted.target, wanted.rules, wanted.donated, wanted.fixed, library});
}

}  // namespace

PlanStore::Planned PlanStore::schedule(const ir::Graph& graph, const scheduler::ScheduleOptions& wanted,
                                       const std::string& library) const {
  if (!disk_ && !frozen_) return {scheduler::schedule(graph, wanted)};
  const disk::CacheKey key = key_of(graph, wanted, library);
  if (const auto entry = disk_ ? disk_->find(key) : std::nullopt) {
    if (auto plan = disk::plan_in(*entry, graph)) return {*std::move(plan), true};
    disk_->remove(key);
  }
  FJ_CHECK(!frozen_, "frozen: graph @{} would have to be planned; {}", graph.name(),
           disk_ ? explain(*disk_, key).text : "there is no cache on disk");
  try {
    return {scheduler::schedule(graph, wanted)};
  } catch (const scheduler::NoKernel& no_kernel) {
    disk_->put(key, disk::no_plan_sections(graph, no_kernel));
    throw;
  }
}

void PlanStore::put(const ir::Graph& graph, const scheduler::ScheduleOptions& wanted, const scheduler::Plan& plan,
                    const std::string& library) const {
  if (!disk_ || !plan.fallbacks.empty()) return;
  disk_->put(key_of(graph, wanted, library), disk::plan_sections(graph, plan));
}

}  // namespace fusejit::runtime
