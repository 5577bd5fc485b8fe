// Plans in the cache on disk: the key that a graph, its permissions and the options make, and the text of the plan.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "ir/graph.h"
#include "runtime/disk/entry.h"
#include "scheduler/make_plan.h"

namespace fusejit::runtime::disk {

// Besides the graph, everything that changes a plan.
struct PlanWish {
  Target target;
  scheduler::Rules rules = scheduler::Rules::all;
  scheduler::MemoryLimit memory_limit = {};
  std::vector<bool> donated, fixed;  // per parameter; empty: none
  std::string library;               // whose calls stand in for kernels, with its version and its choices; "": none
  std::string tune = "off";          // how much of it was chosen by its time
};

// Parts: ops, shapes, dtypes, layouts, attributes, donated, fixed, target, rules, memory
// limit, library, tune, planner. Names of graph and
// parameters are in none.
CacheKey plan_key(const ir::Graph& graph, const PlanWish& wish, std::string_view planner);
CacheKey plan_key(const ir::Graph& graph, const PlanWish& wish);  // by this build

std::vector<Section> plan_sections(const ir::Graph& graph, const scheduler::Plan& plan);
// That there is none, and why: the graph is to be cut around some ops.
std::vector<Section> no_plan_sections(const ir::Graph& graph, const scheduler::NoKernel& no_kernel);
// Nothing if the text is no plan for a graph of that key. Throws NoKernel where that was put.
std::optional<scheduler::Plan> plan_in(const Entry& entry, const ir::Graph& graph);

}  // namespace fusejit::runtime::disk
