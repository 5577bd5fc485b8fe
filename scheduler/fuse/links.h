// GroupLinks: which groups need which.
#pragma once

#include <span>
#include <vector>

namespace fusejit::scheduler {

// By group: the groups that it needs, its first and last node.
struct GroupLinks {
  std::vector<std::vector<int>> producers;
  std::vector<int> first_node, last_node;
};

// A walk from groups to those that they need. Its memory of where it has been is kept from one question to the next.
class DependencyWalk {
 public:
  explicit DependencyWalk(const GroupLinks& links) : links_(links) {}
  // One of `groups`, none of which is `group`, needs `group`.
  bool any_needs(std::span<const int> groups, int group);

 private:
  const GroupLinks& links_;
  std::vector<int> seen_in_walk_;  // by group: the last walk that came along
  int walk_ = 0;
};

}  // namespace fusejit::scheduler
