// From recorded values to a graph: which nodes are to be computed, from which arguments, under which key.
//
// A walk stops at leaves and at evaluated values: those are the arguments. A leaf that is still to be computed is what
// it is computed from, under another name. The same program recorded again gives the same key, so a graph is captured
// once and later recordings only look it up. Regions are renumbered in order of appearance, so that each recording of a
// recomputation has the same number.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "frontend/state.h"
#include "ir/base/hash.h"
#include "ir/graph.h"

namespace fusejit {

// Addresses to dense numbers; open addressing, because every recording of a step goes through it.
class NodeNumbers {
 public:
  NodeNumbers();
  // The number of `node`, or -1.
  int find(const ir::Node* node) const;
  // InternalError-free by contract: the node must be new.
  void add(const ir::Node* node, int number);

 private:
  struct Entry {
    const ir::Node* node = nullptr;
    int number = 0;
  };
  std::size_t place(const ir::Node* node) const;
  std::vector<Entry> entries_;
  std::size_t used_ = 0;
};

class Trace {
 public:
  // Caller holds the graph lock, here and in `add_result` and `shares`.
  void add_result(const ir::Value& value);
  // True if `value` depends on a tensor of this trace, an argument or an inner one, and on nothing but this trace that
  // `later` computes: then it is computed here too.
  bool shares(const ir::Value& value, const Trace& later) const;
  // The leaves still to be computed that `value` was computed from, the nearest ones; none that is in either trace.
  std::vector<ir::Value> open_leaves(const ir::Value& value, const Trace& later) const;

  struct Entry {
    const ir::Node* node = nullptr;
    bool argument = false;
    std::int32_t uses = 0;  // as an operand inside the trace, and as a result
    std::int32_t held = 0;  // references to the node that the trace explains
  };
  // A leaf that is still to be computed: the value of another entry.
  struct Leaf {
    const ir::Node* node = nullptr;
    int number = 0;
    std::int32_t held = 0;
  };
  // In order: operands before users. The results keep all of it alive.
  const std::vector<Entry>& entries() const { return entries_; }
  const std::vector<Leaf>& leaves() const { return leaves_; }
  const std::vector<ir::Value>& results() const { return results_; }
  // Numbers of the argument entries, in order of first use.
  const std::vector<int>& arguments() const { return arguments_; }
  // Of the entry that computes or is `node`, or -1.
  int number_of(const ir::Node* node) const;

  // Structure, types and constants; not the identity of arguments.
  ir::Hash key() const;
  // The graph with parameters of its own: it keeps no buffer and no recorded node alive.
  // Parameters are called p0, p1, ... unless `names` knows better.
  ir::Graph graph(const std::string& name, const std::unordered_map<const ir::Node*, std::string>& names = {}) const;

 private:
  std::vector<std::uint32_t> dense_regions() const;
  std::int32_t& held(const ir::Node* node);
  void use(const ir::Node* node);
  std::vector<Entry> entries_;
  std::vector<Leaf> leaves_;
  std::vector<ir::Value> sources_;  // of the leaves, which forget them when they are computed
  std::vector<int> arguments_;
  std::vector<ir::Value> results_;
  NodeNumbers numbers_;
};

}  // namespace fusejit
