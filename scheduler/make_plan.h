// The arrow Graph -> Plan.
#pragma once

#include "fusejit/error.h"
#include "ir/contraction.h"
#include "ir/graph.h"
#include "scheduler/library.h"
#include "scheduler/plan.h"
#include "scheduler/recompute/memory_limit.h"

namespace fusejit::scheduler {

struct PlanOptions {
  Target target;
  Rules rules = Rules::all;
  std::vector<bool> donated;      // per parameter; empty: none
  LibrarySupports supports = {};  // what else a library does in the call of an anchor, for a target with one
  std::vector<bool> fixed =
      {};  // per parameter; empty: none. Never changed: laid out for its readers once, not each run
  // What a run needs at once (report/memory.h) is no more than this, by computing values of the forward pass again for
  // the backward pass: as few as it takes. UserError where that is not enough, with the least that is. Only with rules.
  MemoryLimit memory_limit = {};
  // What is computed for a concatenation is stored in its memory, where that can be. Never under a memory limit that
  // values have to be computed again for, whose model knows values with memory of their own.
  bool concat_in_place = true;
  // A group whose kernel cannot be made is made from its parts (Plan::fallbacks). Never in strict mode, nor with a
  // `reschedule`.
  bool fall_back = true;
  // Another schedule in place of the chosen one, where it is legal; else UserError with the rule that it breaks. What
  // is built of it is verified.
  Reschedule reschedule = {};
  // For tests that make an anchor up: the graph is as passes leave it, and what an anchor computes, which else its row
  // says.
  bool is_optimised = false;
  ir::ContractionsFn contractions = ir::contractions_of;
  // For tests: throws where a kernel is to count as one that cannot be made.
  std::function<void(const ir::Kernel&)> inspect = {};
};

// Ops of a graph for which there is no kernel, each by itself.
class NoKernel : public UnsupportedError {
 public:
  NoKernel(const std::string& why, ir::Graph graph, std::vector<int> nodes, bool empty)
      : UnsupportedError(why), graph_(std::move(graph)), nodes_(std::move(nodes)), empty_(empty) {}
  // The one that was scheduled, or what passes made of it: same parameters, same results.
  const ir::Graph& graph() const { return graph_; }
  const std::vector<int>& nodes() const { return nodes_; }
  // They have no elements, so there is nothing to compile.
  bool is_empty() const { return empty_; }

 private:
  ir::Graph graph_;
  std::vector<int> nodes_;
  bool empty_;
};

// What a plan with rules is made of: what the passes leave of a recorded graph, without recomputation that saves
// nothing, with what a memory limit asks for, which is only known when it has been planned.
ir::Graph optimised(const ir::Graph& graph, const PlanOptions& options);

// `graph` is as recorded; the passes of ir/passes run inside. Throws NoKernel; without `fall_back` whatever stood in
// the way of a group's kernel, with the group in front.
Plan make_plan(const ir::Graph& graph, const PlanOptions& options);

}  // namespace fusejit::scheduler
