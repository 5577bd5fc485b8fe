// The arrow Graph -> Plan.
#pragma once

#include "ir/graph.h"
#include "scheduler/library.h"
#include "scheduler/plan.h"

namespace fusejit::scheduler {

struct ScheduleOptions {
  Target target;
  std::string rules = "all";      // "all", or "none": one kernel per recorded op, nothing in place
  std::vector<bool> donated;      // per parameter; empty: none
  LibrarySupports supports = {};  // what else a library does in the call of an anchor, for a target with one
  std::vector<bool> fixed =
      {};  // per parameter; empty: none. Never changed: laid out for its readers once, not each run
};

// `graph` is as recorded; the passes of ir/passes run inside. Throws UnsupportedError for what cannot be lowered yet.
Plan schedule(const ir::Graph& graph, const ScheduleOptions& options);

}  // namespace fusejit::scheduler
