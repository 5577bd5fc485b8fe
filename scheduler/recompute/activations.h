// What the forward pass of a step leaves in memory for the backward pass, and how much of it is alive when: the model
// that recomputation is chosen by.
#pragma once

#include <cstdint>
#include <limits>
#include <unordered_set>
#include <vector>

#include "scheduler/fuse/group.h"

namespace fusejit::scheduler {

// A value that the forward pass stores.
struct Activation {
  static constexpr int kNever = std::numeric_limits<int>::max();

  int node = -1;
  std::int64_t bytes = 0;
  int made = 0;                             // the group that stores it
  int last_early = 0;                       // the last of the forward pass that reads it, else `made`
  int first_late = kNever, last_late = -1;  // of the backward pass
  std::vector<int> operands;                // activations that its expression reads
  double cost = 0;                          // of computing it once more: bytes that could move in that time
  bool can_be_dropped = false;
};

class Activations {
 public:
  Activations(const ir::Graph& graph, const Target& target, const Grouping& grouping);

  const std::vector<Activation>& list() const { return list_; }
  // Bytes alive while each group runs, if those that are `dropped` (by activation) are computed again for whoever reads
  // them late. Results are not counted.
  std::vector<std::int64_t> alive(const std::vector<bool>& dropped) const;
  // The most of those.
  std::int64_t peak(const std::vector<bool>& dropped) const;
  // Share of the time of a step that computing them again takes.
  double extra_time(const std::vector<bool>& dropped) const;
  // The graph that does so.
  ir::Graph without(const std::vector<bool>& dropped) const;

 private:
  const ir::Graph& graph_;
  std::vector<bool> stored_;                   // by node
  std::unordered_set<const ir::Node*> early_;  // what the forward pass computes
  std::vector<Activation> list_;               // operands before users
  std::vector<std::int64_t> others_;           // by group: bytes of everything else that is alive
  double cost_ = 0;                            // of the whole step
};

}  // namespace fusejit::scheduler
