// Bounds of index expressions from the loops and conditions around them (kernel-ir.md §6, Bounds proof).
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "ir/kernel/walk.h"

namespace fusejit::ir {

// A loop or a side of an `if` around a statement.
struct Enclosing {
  const ForStmt* loop = nullptr;
  const IfStmt* choice = nullptr;
  bool in_else = false;
};
using Path = std::vector<Enclosing>;  // outer to inner

class Facts {
 public:
  explicit Facts(std::span<const Enclosing> path);

  // The largest constant that the facts prove `index` to be at least; nothing if they prove none.
  std::optional<std::int64_t> at_least(const Index& index) const;
  std::optional<std::int64_t> at_most(const Index& index) const;
  bool proves_non_negative(const Index& index) const;

 private:
  // What the extents of the loops alone say, by interval arithmetic: cheap.
  std::optional<Interval> loop_range(const Index& index) const;
  // The same, and what conditions say of exactly this expression.
  std::optional<Interval> constant_range(const Index& index) const;
  struct Search {
    int steps = 0;
    std::optional<std::int64_t> best;
    std::int64_t enough;  // stop when best reaches it
  };
  // Depth of the innermost loop whose variable occurs, -1 if none; values give no depth.
  int depth(const IndexAtom& atom) const;
  void lower(const Index& index, std::int64_t scale, Search& search) const;
  std::optional<std::int64_t> best(const Index& index, std::int64_t enough) const;

  std::vector<const ForStmt*> loops_;  // outer to inner
  std::vector<Index> conditions_;      // each >= 0
};

}  // namespace fusejit::ir
