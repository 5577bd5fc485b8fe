// Loop variables with values: what bounds and conditions of a path come to.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "ir/kernel/prove.h"

namespace fusejit::ir {

// Which loop of the path the leaf is the variable of; path.size() for a loaded value or a variable of no loop.
inline std::size_t level_of(const Path& path, const IndexAtom& leaf) {
  if (leaf.kind != AtomKind::variable) return path.size();
  const auto is_its_loop = [&](const Enclosing& e) { return e.loop && e.loop->variable == leaf.id; };
  return static_cast<std::size_t>(std::find_if(path.begin(), path.end(), is_its_loop) - path.begin());
}

class Assignment {
 public:
  explicit Assignment(const Path& path) {
    std::size_t variables = 0;
    for (const Enclosing& e : path)
      if (e.loop) variables = std::max(variables, static_cast<std::size_t>(e.loop->variable) + 1);
    values_.resize(variables);
  }

  std::int64_t& operator[](VarId variable) { return values_[static_cast<std::size_t>(variable)]; }

  // Loaded values and variables of no loop of the path are 0.
  std::int64_t value(const Index& index) const {
    std::int64_t sum = index.constant();
    for (const IndexTerm& term : index.terms()) sum += term.coefficient * value(term.atom);
    return sum;
  }
  // Whether the compares of an `if` lead to this side of it.
  bool holds(const Enclosing& side) const {
    const std::vector<Compare>& compares = side.choice->compares;
    const bool all = std::all_of(compares.begin(), compares.end(), [&](const Compare& c) {
      const std::int64_t left = value(c.left);
      return c.kind == CompareKind::lt ? left < c.right : c.kind == CompareKind::ge ? left >= c.right : left == c.right;
    });
    return all != side.in_else;
  }
  // From `low` to before `high`.
  Interval bounds(const ForStmt& loop) const {
    Interval range{INT64_MIN, INT64_MAX};
    for (const Index& index : loop.low) range.low = std::max(range.low, value(index));
    for (const Index& index : loop.high) range.high = std::min(range.high, value(index));
    return range;
  }

 private:
  std::int64_t value(const IndexAtom& atom) const {
    if (atom.inner) {
      const std::int64_t inner = value(*atom.inner), quotient = floor_div(inner, atom.divisor);
      return atom.kind == AtomKind::quotient ? quotient : inner - quotient * atom.divisor;
    }
    const auto id = static_cast<std::size_t>(atom.id);
    return atom.kind == AtomKind::variable && id < values_.size() ? values_[id] : 0;
  }

  std::vector<std::int64_t> values_;  // by VarId
};

}  // namespace fusejit::ir
