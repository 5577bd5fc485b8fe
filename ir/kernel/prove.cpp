#include "ir/kernel/prove.h"

#include <algorithm>
#include <cmath>

namespace fusejit::ir {
namespace {

constexpr int kMaxSteps = 3000;
constexpr std::int64_t kMaxScale = std::int64_t{1} << 40;

std::int64_t floor_div(std::int64_t a, std::int64_t b) { return a / b - (a % b < 0 ? 1 : 0); }

// What a compare says when it holds or when it does not: expressions that are >= 0.
void add_condition(const Compare& c, bool holds, std::vector<Index>& facts) {
  const bool less = (c.kind == CompareKind::lt) == holds;
  if (c.kind == CompareKind::eq) {
    if (!holds) return;
    facts.push_back(c.left - Index(c.right));
    facts.push_back(Index(c.right) - c.left);
  } else {
    facts.push_back(less ? Index(c.right) - c.left - Index(1) : c.left - Index(c.right));
  }
}

}  // namespace

Facts::Facts(std::span<const Enclosing> path) {
  for (const Enclosing& e : path) {
    if (e.loop) {
      loops_.push_back(e.loop);
    } else if (!e.in_else) {
      for (const Compare& c : e.choice->compares) add_condition(c, true, conditions_);
    } else if (e.choice->compares.size() == 1) {
      add_condition(e.choice->compares[0], false, conditions_);
    }
  }
}

int Facts::depth(const IndexAtom& atom) const {
  if (atom.inner) {
    int deepest = -1;
    for (const IndexTerm& t : atom.inner->terms()) deepest = std::max(deepest, depth(t.atom));
    return deepest;
  }
  if (atom.kind == AtomKind::variable)
    for (std::size_t i = loops_.size(); i-- > 0;)
      if (loops_[i]->variable == atom.id) return static_cast<int>(i);
  return -1;
}

std::optional<Interval> Facts::constant_range(const Index& index) const {
  std::optional<Interval> whole = loop_range(index);
  if (!whole) return std::nullopt;
  if (index.is_constant()) return whole;
  const IndexTerm& lead = index.terms()[0];
  for (const Index& fact : conditions_) {
    for (const IndexTerm& t : fact.terms()) {
      if (!(t.atom == lead.atom) || t.coefficient % lead.coefficient != 0) continue;
      const std::int64_t k = std::abs(t.coefficient / lead.coefficient);
      if (k == 0 || k > kMaxScale) continue;
      // k E = (k E + fact) - fact <= k E + fact, and likewise below.
      if (const auto above = loop_range(index * k + fact))
        whole->high = std::min(whole->high, floor_div(above->high, k));
      if (const auto below = loop_range(index * k - fact))
        whole->low = std::max(whole->low, floor_div(below->low + k - 1, k));
    }
  }
  return whole;
}

std::optional<Interval> Facts::loop_range(const Index& index) const {
  return index.interval([this](const IndexAtom& atom) -> std::optional<Interval> {
    const int loop_depth = depth(atom);
    if (atom.kind != AtomKind::variable || loop_depth < 0) return std::nullopt;
    const ForStmt& loop = *loops_[static_cast<std::size_t>(loop_depth)];
    std::optional<Interval> range;
    for (const Index& low : loop.low) {
      const auto bound = loop_range(low);
      if (bound && (!range || bound->low > range->low)) range = Interval{bound->low, INT64_MAX};
    }
    if (!range) return std::nullopt;
    bool bounded = false;
    for (const Index& high : loop.high) {
      const auto bound = loop_range(high);
      if (bound) range->high = std::min(range->high, bound->high - 1), bounded = true;
    }
    if (!bounded) return std::nullopt;
    for (const Index& fact : conditions_) {  // those that speak of this variable alone: +-v + c >= 0
      if (fact.terms().size() != 1 || !(fact.terms()[0].atom == atom)) continue;
      if (fact.terms()[0].coefficient == 1) range->low = std::max(range->low, -fact.constant());
      if (fact.terms()[0].coefficient == -1) range->high = std::min(range->high, fact.constant());
    }
    return range;
  });
}

// Replaces the innermost atom by its bounds until a constant is left; index / scale is the expression asked about.
void Facts::lower(const Index& index, std::int64_t scale, Search& search) const {
  if (++search.steps > kMaxSteps || scale > kMaxScale || (search.best && *search.best >= search.enough)) return;
  if (index.is_constant()) {
    const std::int64_t bound = floor_div(index.constant() + scale - 1, scale);  // an integer: rounded up
    if (!search.best || bound > *search.best) search.best = bound;
    return;
  }
  // Quotients and remainders before the variables they are made of.
  const IndexTerm* innermost = nullptr;
  int innermost_depth = -2;
  for (const IndexTerm& t : index.terms()) {
    const int d = depth(t.atom);
    if (d > innermost_depth || (d == innermost_depth && t.atom.inner)) innermost = &t, innermost_depth = d;
  }
  const IndexTerm term = *innermost;
  const Index rest = index.without(term.atom);
  const std::int64_t k = term.coefficient, c = term.atom.divisor;
  switch (term.atom.kind) {
    case AtomKind::value:
      return;
    case AtomKind::variable: {
      if (innermost_depth < 0) return;
      const ForStmt& loop = *loops_[static_cast<std::size_t>(innermost_depth)];
      if (k > 0) {
        for (const Index& low : loop.low) lower(rest + low * k, scale, search);
      } else {
        for (const Index& high : loop.high) lower(rest + (high - Index(1)) * k, scale, search);
      }
      return;
    }
    case AtomKind::quotient:
      if (k > 0) {
        if (proves_non_negative(*term.atom.inner)) lower(rest, scale, search);
        lower(rest * c + (*term.atom.inner - Index(c - 1)) * k, scale * c, search);
        if (const auto range = constant_range(*term.atom.inner)) {
          lower(rest + Index(floor_div(range->low, c) * k), scale, search);
        }
      } else {
        lower(rest * c + *term.atom.inner * k, scale * c, search);
        // The quotient grows with E: the floor of its largest value, which the rational bound above misses.
        if (const auto range = constant_range(*term.atom.inner)) {
          lower(rest + Index(floor_div(range->high, c) * k), scale, search);
        }
      }
      return;
    case AtomKind::remainder: {
      lower(k > 0 ? rest : rest + Index(c - 1) * k, scale, search);
      // E % c <= E where E >= 0.
      if (k < 0 && proves_non_negative(*term.atom.inner)) lower(rest + *term.atom.inner * k, scale, search);
    }
  }
}

std::optional<std::int64_t> Facts::best(const Index& index, std::int64_t enough) const {
  std::optional<std::int64_t> best;
  const auto attempt = [&](const Index& with_facts, std::int64_t scale) {
    Search search{0, std::nullopt, enough};
    try {
      lower(with_facts, scale, search);
    } catch (const UserError&) {
      return;  // beyond 62 bits: not proven
    }
    if (search.best && (!best || *search.best > *best)) best = search.best;
  };
  attempt(index, 1);
  for (const Index& fact : conditions_) {
    if (best && *best >= enough) break;
    attempt(index - fact, 1);
    // The multiples of the fact that cancel its first atom; where the question is yes or no, any of its atoms.
    for (const IndexTerm& own : fact.terms()) {
      if (&own != &fact.terms()[0] && (enough == INT64_MAX || (best && *best >= enough))) break;
      for (const IndexTerm& t : index.terms()) {
        if (!(t.atom == own.atom) || (t.coefficient > 0) != (own.coefficient > 0)) continue;
        const std::int64_t f = std::abs(own.coefficient), g = std::abs(t.coefficient);
        if (f != g && f < kMaxScale && g < kMaxScale) attempt(index * f - fact * g, f);
      }
    }
  }
  return best;
}

std::optional<std::int64_t> Facts::at_least(const Index& index) const { return best(index, INT64_MAX); }

std::optional<std::int64_t> Facts::at_most(const Index& index) const {
  const std::optional<std::int64_t> bound = best(index * -1, INT64_MAX);
  if (!bound) return std::nullopt;
  return -*bound;
}

bool Facts::proves_non_negative(const Index& index) const {
  const std::optional<std::int64_t> bound = best(index, 0);
  return bound && *bound >= 0;
}

}  // namespace fusejit::ir
