// May a stored value join a group? Every no has a code and a sentence.
#pragma once

#include <optional>

#include "scheduler/fuse/group.h"

namespace fusejit::scheduler {

struct Candidate {
  int node;
  const Type& domain;  // that it would be computed over: its own, or the group's that a reshape makes of it
  const std::vector<Access>& accesses;
};
enum class JoinAs : std::uint8_t { store, reduction, final };
struct Verdict {
  bool ok = false;
  JoinAs as = JoinAs::store;
  RefusalCode code = RefusalCode::cycle;
  std::string why;
};
// Acyclicity is the caller's: this looks at the two alone.
Verdict may_fuse(const ir::Graph& graph, const Grouping& grouping, int group, const Candidate& candidate);

}  // namespace fusejit::scheduler
