#include "runtime/disk/plan_store.h"

#include "ir/base/check.h"
#include "runtime/disk/explain.h"
#include "runtime/profiler.h"

namespace fusejit::runtime::disk {
namespace {

CacheKey key_of(const ir::Graph& graph, const scheduler::PlanOptions& wanted, const PlanMaker& maker) {
  return plan_key(graph, {wanted.target, wanted.rules, wanted.memory_limit, wanted.donated, wanted.fixed, maker.library,
                          maker.tune});
}

}  // namespace

PlanStore::Planned PlanStore::schedule(const ir::Graph& graph, const scheduler::PlanOptions& wanted,
                                       const PlanMaker& maker) const {
  const auto make = [&] {
    const ProfileScope scope("schedule", graph.name());
    return maker.make ? maker.make() : scheduler::make_plan(graph, wanted);
  };
  if (wanted.reschedule || (!disk_ && !frozen_)) return {make()};
  const CacheKey key = key_of(graph, wanted, maker);
  const ProfileScope scope("disk", graph.name());
  if (const auto entry = disk_ ? disk_->find(key) : std::nullopt) {
    if (auto plan = plan_in(*entry, graph)) return {*std::move(plan), true};
    disk_->remove(key);
  }
  FJ_CHECK(!frozen_, "frozen: graph @{} would have to be planned; {}", graph.name(),
           disk_ ? explain(*disk_, key).text : "there is no cache on disk");
  try {
    return {make()};
  } catch (const scheduler::NoKernel& no_kernel) {
    disk_->put(key, no_plan_sections(graph, no_kernel));
    throw;
  }
}

void PlanStore::put(const ir::Graph& graph, const scheduler::PlanOptions& wanted, const scheduler::Plan& plan,
                    const PlanMaker& maker) const {
  if (!disk_ || wanted.reschedule || !plan.fallbacks.empty()) return;
  disk_->put(key_of(graph, wanted, maker), plan_sections(graph, plan));
}

}  // namespace fusejit::runtime::disk
