// What stands between a graph and its plan: the cache on disk, and the freeze.
#pragma once

#include <functional>
#include <memory>
#include <optional>

#include "ir/graph.h"
#include "runtime/disk/disk_cache.h"
#include "runtime/disk/entries/plan_entry.h"
#include "scheduler/make_plan.h"

namespace fusejit::runtime::disk {

// Who makes the plans.
struct PlanMaker {
  std::string library = "", tune = "off";      // as PlanWish
  std::function<scheduler::Plan()> make = {};  // empty: make_plan
};

class PlanStore {
 public:
  // `disk` may be null. `frozen`: what is not there must not be made.
  PlanStore(std::shared_ptr<DiskCache> disk, bool frozen) : disk_(std::move(disk)), frozen_(frozen) {}

  struct Planned {
    scheduler::Plan plan;
    bool was_kept = false;
  };
  // As it is made, unless the plan is there. UserError if it is not and frozen, naming the first part of the key that
  // differs from the nearest plan's. That there is no plan of the whole (NoKernel) is kept too. With a `reschedule`,
  // which no key has, nothing is looked for.
  Planned schedule(const ir::Graph& graph, const scheduler::PlanOptions& wanted, const PlanMaker& maker = {}) const;
  // Keeps what was scheduled. Plans with fallbacks are not kept (the next build may do without), nor those with a
  // `reschedule`.
  void put(const ir::Graph& graph, const scheduler::PlanOptions& wanted, const scheduler::Plan& plan,
           const PlanMaker& maker = {}) const;

 private:
  const std::shared_ptr<DiskCache> disk_;
  const bool frozen_;
};

}  // namespace fusejit::runtime::disk
