// FusionGroup: graph nodes that run together as one kernel, around an anchor, reductions or element-wise results.
#pragma once

#include <map>
#include <vector>

#include "fusejit/target.h"
#include "ir/graph.h"
#include "scheduler/fuse/refusal.h"
#include "scheduler/lower/expression/space.h"

namespace fusejit::scheduler {

struct Group {
  int anchor = -1;            // node whose tile the group is built around, -1: none
  Type domain;                // what is iterated over
  std::vector<bool> reduced;  // dims of the domain that `reductions` reduce; empty without reductions
  std::vector<int> stores;    // values of the domain's elements that are stored, in graph order
  // Of stores whose dims are the domain's in another order, as behind a permutation: the dim of the domain that each of
  // theirs is.
  std::map<int, std::vector<int>> turned;
  std::vector<int> inner;       // values of the domain's elements that only this group uses: computed, never stored
  std::vector<int> reductions;  // reduce nodes over the domain, one class
  std::vector<int> finals;      // stored values of the reduced class that need the finished reductions (R3)
  // The anchor's first operand, computed and stored by the copy that the anchor reads (R7), and what else of its
  // elements is stored there; empty: that operand is in memory, or stored by nobody.
  std::vector<int> copies;
  int length = 0;  // sum of its members' lengths
};

struct Refused {
  int producer, consumer;  // nodes
  Refusal refusal;
};

// Where a value stands in the memory of a concatenation that its parts' kernels write (homes.h).
struct Home {
  int root = -1;             // that concatenation, which is part of no other; -1: the value has memory of its own
  std::int64_t channel = 0;  // of the root that its first one is
  bool is_whole = false;     // a concatenation: no group stores it, it is there when all of its parts are
};

// What a library's call stores in place of its anchor's result, the mask whose bits it reads (-1: none), and sums that
// it makes together or not at all. As nodes.
struct CallResult {
  int anchor, result, mask;
  std::vector<int> sums = {};
  friend bool operator==(const CallResult&, const CallResult&) = default;
};

struct Grouping {
  std::vector<bool> stored;                   // by node: in memory; everything else is computed where it is used
  std::vector<bool> as_bits;                  // by node: a mask that is kept one bit an element (R8)
  std::vector<int> lengths;                   // by node: nodes to compute to get it from what is stored
  std::vector<int> group_of;                  // by node: group that stores it, -1: parameter, constant or not stored
  std::vector<Group> groups;                  // in execution order
  std::vector<std::vector<Access>> accesses;  // by node that a group stores: accesses_of()
  std::vector<Refused> refusals;
  std::vector<Home> homes;  // by node
  std::vector<CallResult> call_results;

  bool is_in_place(int node) const { return homes[static_cast<std::size_t>(node)].is_whole; }
};

// R10: a kernel computes at most so many nodes. Expressions are walked by recursion, and compilers are not linear.
inline constexpr int kMostLength = 128;

}  // namespace fusejit::scheduler
