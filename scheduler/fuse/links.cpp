#include "scheduler/fuse/links.h"

#include <algorithm>
#include <utility>

#include "ir/base/at.h"

namespace fusejit::scheduler {
void GroupLinks::open(int node) {
  producers.emplace_back();
  users.emplace_back();
  for (auto* list : {&first_node, &last_node, &last_needed}) list->push_back(node);
}

void GroupLinks::add_node(int group, int node) {
  last_node[at(group)] = std::max(last_node[at(group)], node);
  need(group, node);
}

void GroupLinks::add_producer(int group, int producer) {
  std::vector<int>& known = producers[at(group)];
  if (std::find(known.begin(), known.end(), producer) != known.end()) return;
  known.push_back(producer);
  users[at(producer)].push_back(group);
  need(group, last_needed[at(producer)]);
}

void GroupLinks::merge(int group, int other) {
  std::erase(producers[at(group)], other);
  for (const int producer : std::exchange(producers[at(other)], {})) {
    std::erase(users[at(producer)], other);
    add_producer(group, producer);
  }
  first_node[at(group)] = std::min(first_node[at(group)], first_node[at(other)]);
  last_node[at(group)] = std::max(last_node[at(group)], last_node[at(other)]);
  for (const int user : std::exchange(users[at(other)], {})) {
    std::erase(producers[at(user)], other);
    if (user != group) add_producer(user, group);
  }
}

void GroupLinks::need(int group, int node) {
  std::vector<int> raised{group};
  while (!raised.empty()) {
    const int g = raised.back();
    raised.pop_back();
    if (last_needed[at(g)] >= node) continue;
    last_needed[at(g)] = node;
    raised.insert(raised.end(), users[at(g)].begin(), users[at(g)].end());
  }
}

bool DependencyWalk::any_needs(std::span<const int> groups, int group) {
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
      // Where all nodes that it needs come before the first node of `group`, it cannot depend on that.
      if (links_.last_needed[at(producer)] >= links_.first_node[at(group)]) enter(producer);
    }
  }
  return false;
}

}  // namespace fusejit::scheduler
