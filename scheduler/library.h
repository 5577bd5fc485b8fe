// Calls of a library that do the work of a group (cuDNN). The scheduler knows no library: it writes the ops down as a
// graph and asks.
#pragma once

#include <functional>
#include <set>
#include <string>
#include <vector>

#include "ir/graph.h"
#include "scheduler/fuse/group.h"

namespace fusejit::scheduler {

struct LibraryAnswer {
  bool ok = false;
  std::string why;  // not ok: one sentence, the library's own reason in it
};
// Would one call do this? Parameters are values in memory, masks (bool) one bit an element. Results are written: the
// first has the anchor's elements, all others are sums of these; the ops are primitive.
using LibrarySupports = std::function<LibraryAnswer(const ir::Graph& call, const Target& target)>;

struct CapturedCall {
  ir::Graph graph;
  std::vector<int> nodes;  // graph nodes of its parameters, then of its results
};
// What computes `results` from what is stored outside `group`, as a graph of its own.
CapturedCall capture_call(const ir::Graph& graph, const Grouping& grouping, int group, const std::vector<int>& results);
// The same before there are groups: from whatever is not `inside`.
CapturedCall capture_call(const ir::Graph& graph, const std::set<int>& inside, const std::vector<int>& results);

// True if the target's library runs this anchor in one call on stored values.
bool runs_in_library(const ir::Graph& graph, const Target& target, int node);

}  // namespace fusejit::scheduler
