#include "ir/kernel/prove.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

namespace fusejit::ir {
namespace {

constexpr int kMostStepsOneWay = 3000;  // of one way to answer a question
constexpr int kMostStepsInside = 60;    // the same for the inside of a quotient
constexpr int kMostDepth = 96;          // of substitutions, those inside quotients included: bounds the stack
constexpr int kMostNested = 2;          // quotients inside each other that are looked into
constexpr std::int64_t kMaxScale = std::int64_t{1} << 40;

// The least value from `bound` on that `index` can have: an even sum that is at least -1 is at least 0.
std::int64_t rounded_up(std::int64_t bound, const Index& index) {
  std::int64_t step = 0;
  for (const IndexTerm& t : index.terms()) step = std::gcd(step, t.coefficient);
  if (step <= 1 || std::abs(bound) >= kMaxScale || std::abs(index.constant()) >= kMaxScale) return bound;
  return index.constant() - floor_div(index.constant() - bound, step) * step;
}

// Above what it is made of: a quotient is replaced before the atoms inside it, of which its bounds speak.
int height(const IndexAtom& atom) {
  int most = 0;
  if (atom.inner)
    for (const IndexTerm& t : atom.inner->terms()) most = std::max(most, 1 + height(t.atom));
  return most;
}

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
      loops_.push_back({e.loop, e.loop->variable, std::nullopt});
    } else if (!e.in_else) {
      for (const Compare& c : e.choice->compares) add_condition(c, true, conditions_);
    } else if (e.choice->compares.size() == 1) {
      add_condition(e.choice->compares[0], false, conditions_);
    }
  }
  for (Loop& loop : loops_) {  // outer to inner: bounds name outer variables, the ranges of others are not there yet
    std::optional<Interval> range;
    for (const Index& low : loop.stmt->low) {
      const auto bound = loop_range(low);
      if (bound && (!range || bound->low > range->low)) range = Interval{bound->low, INT64_MAX};
    }
    for (const Index& high : loop.stmt->high) {
      const auto bound = loop_range(high);
      if (range && bound) range->high = std::min(range->high, bound->high - 1);
    }
    if (range && range->high == INT64_MAX) range.reset();
    for (const Index& fact : conditions_) {  // those that speak of this variable alone: +-v + c >= 0
      if (!range || fact.terms().size() != 1) continue;
      const IndexTerm& own = fact.terms()[0];
      if (own.atom.kind != AtomKind::variable || own.atom.id != loop.variable) continue;
      if (own.coefficient == 1) range->low = std::max(range->low, -fact.constant());
      if (own.coefficient == -1) range->high = std::min(range->high, fact.constant());
    }
    loop.range = range;
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
      if (loops_[i].variable == atom.id) return static_cast<int>(i);
  return -1;
}

struct Facts::Question {
  int steps = 0, most_steps = 0;
  int depth = 0, nested = 0;
  struct Asked {
    Index index;
    std::optional<std::int64_t> at_least;  // nothing as long as the answer is being looked for
  };
  std::vector<Asked> asked;
};

struct Facts::Search {
  Question& question;
  std::int64_t enough;  // stop when best reaches it
  int steps_left;
  std::optional<std::int64_t> best;
};

std::optional<Interval> Facts::loop_range(const Index& index) const {
  return index.interval([this](const IndexAtom& atom) -> std::optional<Interval> {
    const int loop = atom.kind == AtomKind::variable ? depth(atom) : -1;
    return loop >= 0 ? loops_[static_cast<std::size_t>(loop)].range : std::nullopt;
  });
}

std::optional<std::int64_t> Facts::range_at_least(const Index& index) const {
  std::optional<std::int64_t> low;
  const auto improve = [&](const Index& sum, std::int64_t parts) {
    const auto range = loop_range(sum);
    const auto bound = range ? std::optional(floor_div(range->low + parts - 1, parts)) : std::nullopt;
    if (bound && (!low || *bound > *low)) low = bound;
  };
  improve(index, 1);
  for (const Index& fact : conditions_) {
    for (const IndexTerm& f : fact.terms()) {
      for (const IndexTerm& t : index.terms()) {
        if (!(f.atom == t.atom) || (f.coefficient > 0) != (t.coefficient > 0)) continue;
        const std::int64_t common = std::gcd(f.coefficient, t.coefficient);
        const std::int64_t a = std::abs(f.coefficient) / common, b = std::abs(t.coefficient) / common;
        // a E = (a E - b fact) + b fact >= a E - b fact, where the atom is gone.
        if (a < kMaxScale && b < kMaxScale) improve(index * a - fact * b, a);
      }
    }
  }
  return low;
}

const IndexTerm& Facts::innermost(const Index& index) const {
  const IndexTerm* found = nullptr;
  std::pair<int, int> most(-2, 0);
  for (const IndexTerm& t : index.terms()) {
    const std::pair<int, int> own(depth(t.atom), height(t.atom));
    if (own >= most) found = &t, most = own;
  }
  return *found;
}

template <class F>
void Facts::each_at_least(const Index& index, const IndexTerm& variable, const F& use) const {
  const int at = variable.atom.kind == AtomKind::variable ? depth(variable.atom) : -1;
  if (at < 0) return;
  const ForStmt& loop = *loops_[static_cast<std::size_t>(at)].stmt;
  const std::int64_t k = variable.coefficient;
  for (const Index& bound : k > 0 ? loop.low : loop.high) use(index.replaced(variable, bound, k, k > 0 ? 0 : -k));
}

// Replaces the innermost atom by its bounds until a constant is left; index / scale is the expression asked about.
void Facts::lower(const Index& index, std::int64_t scale, Search& search) const {
  Question& question = search.question;
  if (--search.steps_left < 0 || question.steps >= question.most_steps || question.depth >= kMostDepth) return;
  ++question.steps;
  if (scale > kMaxScale || (search.best && *search.best >= search.enough)) return;
  if (index.is_constant()) {
    const std::int64_t bound = floor_div(index.constant() + scale - 1, scale);  // an integer: rounded up
    if (!search.best || bound > *search.best) search.best = bound;
    return;
  }
  const IndexTerm& term = innermost(index);
  const std::int64_t k = term.coefficient;
  ++question.depth;
  switch (term.atom.kind) {
    case AtomKind::value:
      break;
    case AtomKind::variable:
      each_at_least(index, term, [&](const Index& next) { lower(next, scale, search); });
      break;
    case AtomKind::quotient:
      lower_quotient(index, term, scale, search);
      break;
    case AtomKind::remainder: {
      lower(index.replaced(term, Index(k > 0 ? 0 : term.atom.divisor - 1), k, 0), scale, search);
      if (k > 0) break;
      // E % c <= E where E >= 0.
      const std::optional<std::int64_t> bound = inner_at_least(*term.atom.inner, question);
      if (bound && *bound >= 0) lower(index.replaced(term, *term.atom.inner, k, 0), scale, search);
    }
  }
  --question.depth;
}

// The quotient grows with E: the floor of E's bound; the rational bound, which knows E itself; and the quotient with
// the innermost variable of E at its bound, where multiples of c leave it.
void Facts::lower_quotient(const Index& index, const IndexTerm& term, std::int64_t scale, Search& search) const {
  const std::int64_t k = term.coefficient, c = term.atom.divisor, sign = k > 0 ? 1 : -1;
  const Index inner = *term.atom.inner * sign;
  const auto floored = [&](const Index& bound) {  // of a bound of inner
    return index.replaced(term, bound * sign / c, k, 0);
  };
  const auto by_range = [&] {
    if (const auto bound = inner_at_least(inner, search.question)) lower(floored(Index(*bound)), scale, search);
  };
  if (k > 0) by_range();
  const Index rest = index.without(term.atom);
  lower(rest * c + (inner - Index(k > 0 ? c - 1 : 0)) * std::abs(k), scale * c, search);
  if (k < 0) by_range();
  each_at_least(inner, innermost(inner), [&](const Index& bound) { lower(floored(bound), scale, search); });
  // k (E / c) + k F = k ((E + c F) / c): tasks and rows stand beside a quotient, conditions speak of their sum.
  Index joined = inner, apart = rest;
  for (const IndexTerm& t : rest.terms()) {
    if (t.coefficient % k != 0) continue;
    joined = joined + Index::of(t.atom) * (t.coefficient / k) * c * sign;
    apart = apart.without(t.atom);
  }
  if (joined == inner) return;
  if (const auto bound = inner_at_least(joined, search.question))
    lower(apart + Index(*bound) * sign / c * k, scale, search);
}

std::optional<std::int64_t> Facts::inner_at_least(const Index& inner, Question& question) const {
  for (const Question::Asked& asked : question.asked)
    if (asked.index == inner) return asked.at_least;
  std::optional<std::int64_t> bound = range_at_least(inner);
  if (question.nested >= kMostNested) return bound;
  const std::size_t place = question.asked.size();
  question.asked.push_back({inner, bound});  // a bound that needs itself gets no further
  ++question.nested;
  const std::optional<std::int64_t> found = best(inner, INT64_MAX, question);
  --question.nested;
  if (found && (!bound || *found > *bound)) bound = found;
  question.asked[place].at_least = bound;
  return bound;
}

// A condition says it outright: the question is a multiple of it and a constant. Found whatever else is around, so that
// an `if` around an access always proves it.
std::optional<std::int64_t> Facts::stated(const Index& index) const {
  std::optional<std::int64_t> best;
  if (index.is_constant()) return best;
  const IndexTerm& own = index.terms()[0];
  for (const Index& fact : conditions_) {
    if (fact.terms().size() != index.terms().size()) continue;
    const IndexTerm& other = fact.terms()[0];
    if (!(other.atom == own.atom) || (other.coefficient > 0) != (own.coefficient > 0)) continue;
    const std::int64_t f = std::abs(other.coefficient), g = std::abs(own.coefficient);
    if (f >= kMaxScale || g >= kMaxScale) continue;
    try {
      const Index rest = index * f - fact * g;
      if (!rest.is_constant()) continue;
      const std::int64_t bound = rounded_up(floor_div(rest.constant() + f - 1, f), index);
      if (!best || bound > *best) best = bound;
    } catch (const UserError&) {  // beyond 62 bits: not proven
    }
  }
  return best;
}

std::optional<std::int64_t> Facts::best(const Index& index, std::int64_t enough, Question& question) const {
  std::optional<std::int64_t> best = stated(index);
  const auto reached = [&] { return best && *best >= enough; };
  if (reached()) return best;
  // (a * index - b * fact) / a; a fact with b = 0 is none.
  const auto attempt = [&](std::int64_t a, const Index& fact, std::int64_t b) {
    const int depth = question.depth;
    try {
      Search search{question, enough, question.nested > 0 ? kMostStepsInside : kMostStepsOneWay, std::nullopt};
      lower(index * a - fact * b, a, search);
      if (!search.best) return;
      const std::int64_t bound = rounded_up(*search.best, index);
      if (!best || bound > *best) best = bound;
    } catch (const UserError&) {
      question.depth = depth;  // beyond 62 bits: not proven
    }
  };
  attempt(1, Index(), 0);
  for (const Index& fact : conditions_) {
    if (reached()) break;
    attempt(1, fact, 1);
    // The multiples of the fact that cancel its first atom; where the question is yes or no, any of its atoms.
    for (const IndexTerm& own : fact.terms()) {
      if (&own != &fact.terms()[0] && (enough == INT64_MAX || reached())) break;
      for (const IndexTerm& t : index.terms()) {
        if (!(t.atom == own.atom) || (t.coefficient > 0) != (own.coefficient > 0)) continue;
        const std::int64_t f = std::abs(own.coefficient), g = std::abs(t.coefficient);
        if (f != g && f < kMaxScale && g < kMaxScale) attempt(f, fact, g);
      }
    }
  }
  return best;
}

// First with the ranges of what is divided, which answer nearly all questions, then with bounds found for it.
std::optional<std::int64_t> Facts::answer(const Index& index, std::int64_t enough, int* steps) const {
  Question with_ranges, with_bounds;
  with_ranges.most_steps = with_bounds.most_steps = kMostSteps / 2;
  with_ranges.nested = kMostNested;
  std::optional<std::int64_t> bound = best(index, enough, with_ranges);
  const bool has_inside = std::any_of(index.terms().begin(), index.terms().end(),
                                      [](const IndexTerm& t) { return t.atom.inner != nullptr; });
  if ((!bound || *bound < enough) && (has_inside || !conditions_.empty())) {
    const std::optional<std::int64_t> other = best(index, enough, with_bounds);
    if (other && (!bound || *other > *bound)) bound = other;
  }
  if (steps) *steps = with_ranges.steps + with_bounds.steps;
  return bound;
}

std::optional<std::int64_t> Facts::at_least(const Index& index) const { return answer(index, INT64_MAX, nullptr); }

std::optional<std::int64_t> Facts::at_most(const Index& index) const {
  const std::optional<std::int64_t> bound = at_least(index * -1);
  if (!bound) return std::nullopt;
  return -*bound;
}

bool Facts::proves_non_negative(const Index& index, int* steps) const {
  const std::optional<std::int64_t> bound = answer(index, 0, steps);
  return bound && *bound >= 0;
}

}  // namespace fusejit::ir
