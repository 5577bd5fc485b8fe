// Bounds of index expressions from the loops and conditions around them (kernel-ir.md §6, Bounds proof).
//
// Total: a question takes a bounded number of steps and a bounded stack, whatever is asked; beyond that, nothing is
// proven.
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
  friend bool operator==(const Enclosing&, const Enclosing&) = default;
};
using Path = std::vector<Enclosing>;  // outer to inner

class Facts {
 public:
  explicit Facts(std::span<const Enclosing> path);

  // The largest constant that the facts prove `index` to be at least; nothing if they prove none.
  std::optional<std::int64_t> at_least(const Index& index) const;
  std::optional<std::int64_t> at_most(const Index& index) const;
  // What the extents of the loops say with one condition at a time: a cheap at_least.
  std::optional<std::int64_t> range_at_least(const Index& index) const;
  // `steps`: what the answer took.
  bool proves_non_negative(const Index& index, int* steps = nullptr) const;

  static constexpr int kMostSteps = 20'000;  // of a question

 private:
  // A question from outside, and all that has to be asked on the way: one budget.
  struct Question;
  // What the extents of the loops alone say, by interval arithmetic: cheap.
  std::optional<Interval> loop_range(const Index& index) const;
  struct Search;
  // Depth of the innermost loop whose variable occurs, -1 if none; values give no depth.
  int depth(const IndexAtom& atom) const;
  const IndexTerm& innermost(const Index& index) const;
  // The sum with a variable at the least values that its loop allows, one after the other: none if it has no loop.
  template <class F>
  void each_at_least(const Index& index, const IndexTerm& variable, const F& use) const;
  void lower(const Index& index, std::int64_t scale, Search& search) const;
  void lower_quotient(const Index& index, const IndexTerm& term, std::int64_t scale, Search& search) const;
  std::optional<std::int64_t> answer(const Index& index, std::int64_t enough, int* steps) const;
  std::optional<std::int64_t> stated(const Index& index) const;
  std::optional<std::int64_t> best(const Index& index, std::int64_t enough, Question& question) const;
  // The bound of what a quotient or remainder is taken of; asked once in a question.
  std::optional<std::int64_t> inner_at_least(const Index& inner, Question& question) const;

  struct Loop {
    const ForStmt* stmt;
    VarId variable;
    std::optional<Interval> range;
  };
  std::vector<Loop> loops_;        // outer to inner
  std::vector<Index> conditions_;  // each >= 0
};

// Facts for one path after the other: statements that stand in one block share them. Of a kernel that stays as it is.
class FactsAlong {
 public:
  const Facts& operator()(const Path& path) {
    if (!facts_ || path != path_) path_ = path, facts_.emplace(path);
    return *facts_;
  }

 private:
  Path path_;
  std::optional<Facts> facts_;
};

}  // namespace fusejit::ir
