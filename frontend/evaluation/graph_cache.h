// Graphs by trace key, within bounds. Not thread-safe: its owner locks.
#pragma once

#include <memory>

#include "ir/base/lru_cache.h"
#include "ir/graph.h"

namespace fusejit {

class GraphCache {
 public:
  std::shared_ptr<const ir::Graph> find(const ir::Hash& key) {
    const auto* graph = graphs_.find(key);
    return graph ? *graph : nullptr;
  }
  void add(const ir::Hash& key, std::shared_ptr<const ir::Graph> graph) {
    const auto bytes = static_cast<std::int64_t>(graph->nodes().size()) * kNodeBytes;
    std::list<std::shared_ptr<const ir::Graph>> gone;
    graphs_.add(key, std::move(graph), bytes, gone);
  }
  std::int64_t evictions() const { return graphs_.evictions(); }

 private:
  static constexpr std::int64_t kNodeBytes = 512;  // a node with its operands, about
  ir::LruCache<std::shared_ptr<const ir::Graph>> graphs_{512, 64 << 20};
};

}  // namespace fusejit
