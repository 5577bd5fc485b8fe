// GroupLinks: which groups need which.
#pragma once

#include <span>
#include <vector>

namespace fusejit::scheduler {

struct GroupLinks {
  // By group: the groups that it needs, those that need it, its first and last node, and the last node of all those
  // that it needs, itself included: a group also takes nodes behind those that read what it had.
  std::vector<std::vector<int>> producers, users;
  std::vector<int> first_node, last_node, last_needed;

  // A group of that node alone, which needs nothing so far.
  void open(int node);
  void add_node(int group, int node);
  // Once, however often it is said.
  void add_producer(int group, int producer);
  // `group` does what `other` did, which nobody needs from now on. Nothing that `group` needs, but for `other` itself,
  // may need that.
  void merge(int group, int other);

 private:
  // Whoever needs the group needs that node.
  void need(int group, int node);
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
