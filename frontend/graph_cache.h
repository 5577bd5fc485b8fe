// Graphs by trace key, the least recently used ones forgotten. Not thread-safe: its owner locks.
#pragma once

#include <list>
#include <memory>
#include <unordered_map>

#include "ir/base/hash.h"
#include "ir/graph.h"

namespace fusejit {

class GraphCache {
 public:
  std::shared_ptr<const ir::Graph> find(const ir::Hash& key) {
    const auto found = graphs_.find(key);
    if (found == graphs_.end()) return nullptr;
    order_.splice(order_.begin(), order_, found->second.place);
    return found->second.graph;
  }
  void add(const ir::Hash& key, std::shared_ptr<const ir::Graph> graph) {
    if (graphs_.contains(key)) return;
    order_.push_front(key);
    graphs_[key] = {std::move(graph), order_.begin()};
    if (graphs_.size() > kMost) graphs_.erase(order_.back()), order_.pop_back();
  }

 private:
  static constexpr std::size_t kMost = 512;
  struct Entry {
    std::shared_ptr<const ir::Graph> graph;
    std::list<ir::Hash>::iterator place;
  };
  std::unordered_map<ir::Hash, Entry, ir::HashOfHash> graphs_;
  std::list<ir::Hash> order_;
};

}  // namespace fusejit
