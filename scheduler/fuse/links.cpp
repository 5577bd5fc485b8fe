#include "scheduler/fuse/links.h"

#include <utility>

namespace fusejit::scheduler {

bool DependencyWalk::any_needs(std::span<const int> groups, int group) {
  const auto at = [](int i) { return static_cast<std::size_t>(i); };
  std::vector<int> open;
  ++walk_;
  seen_in_walk_.resize(links_.producers.size());
  const auto enter = [&](int other) {
    if (std::exchange(seen_in_walk_[at(other)], walk_) != walk_) open.push_back(other);
  };
  for (const int other : groups) enter(other);
  while (!open.empty()) {
    const int current = open.back();
    open.pop_back();
    for (const int producer : links_.producers[at(current)]) {
      if (producer == group) return true;
      // A group all of whose nodes come before the first node of `group` cannot depend on it.
      if (links_.last_node[at(producer)] >= links_.first_node[at(group)]) enter(producer);
    }
  }
  return false;
}

}  // namespace fusejit::scheduler
