// What stands between a graph and its plan: the cache on disk, and the freeze.
#pragma once

#include <memory>
#include <optional>

#include "ir/graph.h"
#include "runtime/disk/disk_cache.h"
#include "runtime/disk/entries/plan_entry.h"
#include "scheduler/make_plan.h"

namespace fusejit::runtime::disk {

class PlanStore {
 public:
  // `disk` may be null. `frozen`: what is not there must not be made.
  PlanStore(std::shared_ptr<DiskCache> disk, bool frozen) : disk_(std::move(disk)), frozen_(frozen) {}

  struct Planned {
    scheduler::Plan plan;
    bool was_kept = false;
  };
  // As schedule(), unless the plan is there. UserError if it is not and frozen, naming the first part of the key that
  // differs from the nearest plan's. That there is no plan of the whole (NoKernel) is kept too. With a `reschedule`,
  // which no key has, nothing is looked for. `library`: as PlanWish.
  Planned schedule(const ir::Graph& graph, const scheduler::PlanOptions& wanted, const std::string& library = "") const;
  // Keeps what was scheduled. Plans with fallbacks are not kept (the next build may do without), nor those with a
  // `reschedule`.
  void put(const ir::Graph& graph, const scheduler::PlanOptions& wanted, const scheduler::Plan& plan,
           const std::string& library = "") const;

 private:
  const std::shared_ptr<DiskCache> disk_;
  const bool frozen_;
};

}  // namespace fusejit::runtime::disk
