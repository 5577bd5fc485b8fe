#include "ir/kernel/sites.h"

#include <algorithm>
#include <functional>
#include <map>
#include <numeric>

namespace fusejit::ir {
namespace {

constexpr std::int64_t kUnknown = std::int64_t{1} << 60;  // an extent that separates nothing

std::int64_t extent_of(const std::optional<Interval>& range) {
  return range ? std::min(kUnknown, range->high - range->low + 1) : kUnknown;
}

}  // namespace

bool is_parallel(Binding b) { return b != Binding::none && b != Binding::unroll && b != Binding::tile; }

namespace {

// What constant bounds of a variable's loop and conditions around the place leave of it, both included.
Interval left_of(VarId variable, const Path& path) {
  std::int64_t low = -kUnknown, high = kUnknown;
  for (const Enclosing& e : path) {
    if (e.loop && e.loop->variable == variable) {
      for (const Index& bound : e.loop->low)
        if (bound.is_constant()) low = std::max(low, bound.constant());
      for (const Index& bound : e.loop->high)
        if (bound.is_constant()) high = std::min(high, bound.constant() - 1);
    }
    if (!e.choice || e.in_else) continue;
    for (const Compare& c : e.choice->compares) {
      const Index::Terms& terms = c.left.terms();
      if (terms.size() != 1 || terms[0].atom.kind != AtomKind::variable || terms[0].atom.id != variable) continue;
      const std::int64_t coefficient = terms[0].coefficient;
      if (c.kind == CompareKind::eq && c.right % coefficient == 0)
        return {c.right / coefficient, c.right / coefficient};
      if (coefficient != 1) continue;
      if (c.kind == CompareKind::lt) high = std::min(high, c.right - 1);
      if (c.kind == CompareKind::ge) low = std::max(low, c.right);
    }
  }
  return {low, high};
}

}  // namespace

std::optional<std::int64_t> fixed_value(VarId variable, const Path& path) {
  const Interval left = left_of(variable, path);
  return left.low == left.high ? std::optional(left.low) : std::nullopt;
}

bool repeats(const ForStmt& loop, const Site& site) {
  if (fixed_value(loop.variable, site.path)) return false;
  return extent_of(site.ranges.of({AtomKind::variable, loop.variable, nullptr, 0})) > 1;
}

bool may_differ(const ForStmt& loop, const Site& a, const Site& b) {
  const std::optional<std::int64_t> value = fixed_value(loop.variable, a.path);
  if (value && value == fixed_value(loop.variable, b.path)) return false;
  return extent_of(a.ranges.of({AtomKind::variable, loop.variable, nullptr, 0})) > 1;
}

namespace {

// A loop with a variable lower bound counts as low + v' with the largest extent of v'.
struct Shifted {
  Index low;
  std::int64_t extent;
};
std::optional<Shifted> shifted(const ForStmt& loop, const VariableRanges& ranges) {
  if (is_parallel(loop.binding) || loop.low.size() != 1 || loop.low[0].is_constant()) return std::nullopt;
  std::int64_t extent = kUnknown;
  for (const Index& high : loop.high)
    if (const auto range = (high - loop.low[0]).simplify(ranges).interval(ranges))
      extent = std::min(extent, range->high);
  if (extent == kUnknown) return std::nullopt;
  return Shifted{loop.low[0], std::max<std::int64_t>(extent, 1)};
}

// Of every number that dims are digits of, in whatever order; the topmost digit holds it.
std::vector<Site::Digits> digits_of(const Place& place, const Memory& memory) {
  std::vector<Site::Digits> found;
  for (std::size_t top = 0; top < place.index.size(); ++top) {
    const Index& index = place.index[top];
    if (memory.dims[top] == 1 || index.terms().size() != 1 || index.terms()[0].coefficient != 1) continue;
    const IndexAtom& atom = index.terms()[0].atom;
    if (atom.kind != AtomKind::quotient) continue;
    Site::Digits digits{*atom.inner + Index(index.constant()) * atom.divisor,
                        std::vector<std::int64_t>(place.index.size(), 0)};
    for (std::int64_t below = 1; digits.weights[top] == 0;) {
      const Index rest = digits.number / below;
      std::size_t digit = 0;
      while (digit < place.index.size() && (digit == top || memory.dims[digit] == 1 || digits.weights[digit] != 0 ||
                                            !(place.index[digit] == rest % memory.dims[digit])))
        ++digit;
      if (digit == place.index.size()) {
        if (!(index == rest)) break;
        digit = top;
      }
      digits.weights[digit] = below;
      below *= memory.dims[digit];
    }
    if (digits.weights[top] != 0) found.push_back(std::move(digits));
  }
  return found;
}

}  // namespace

Site make_site(const Stmt& stmt, const Memory& memory, const Path& path, std::size_t declared_at) {
  const Place* place = touched(stmt);
  Site site{&stmt, place, &memory, std::holds_alternative<StoreStmt>(stmt.node), {}, {}, {}, digits_of(*place, memory)};
  std::map<VarId, std::int64_t> extents;
  std::map<VarId, Index> lows;
  for (const Enclosing& e : path) {
    if (!e.loop) continue;
    const std::optional<Shifted> shift = shifted(*e.loop, site.ranges);
    site.ranges.enter(*e.loop);
    if (shift && !fixed_value(e.loop->variable, path)) {
      extents[e.loop->variable] = shift->extent;
      lows[e.loop->variable] = shift->low;
    }
  }
  site.path.assign(path.begin() + static_cast<std::ptrdiff_t>(declared_at), path.end());
  for (const Index& original : site.place->index) {
    Index index = original;
    // Innermost first: a lower bound may name outer variables that are shifted themselves.
    for (auto e = path.rbegin(); e != path.rend(); ++e) {
      if (!e->loop || lows.count(e->loop->variable) == 0) continue;
      const VarId id = e->loop->variable;
      const std::int64_t c = index.coefficient_of(id);
      if (c != 0) index = index + lows[id] * c;  // v stays as v'
    }
    index = index.substitute([&](const IndexAtom& leaf) -> std::optional<Index> {
      if (leaf.kind != AtomKind::variable) return std::nullopt;
      const std::optional<std::int64_t> value = fixed_value(leaf.id, path);
      return value ? std::optional(Index(*value)) : std::nullopt;
    });
    Site::Dim dim{{}, index.constant()};
    for (const IndexTerm& t : index.terms()) {
      const bool variable = t.atom.kind == AtomKind::variable;
      const auto known = variable ? extents.find(t.atom.id) : extents.end();
      if (known != extents.end()) {
        dim.terms.push_back({t.coefficient, t.atom, 0, known->second});
      } else {
        std::optional<Interval> range = Index::of(t.atom).interval(site.ranges);
        if (range && variable) {
          const Interval left = left_of(t.atom.id, path);
          range = Interval{std::max(range->low, left.low), std::min(range->high, left.high)};
          if (range->low > range->high) range = Interval{range->low, range->low};  // nothing comes there
        }
        dim.terms.push_back({t.coefficient, t.atom, range ? range->low : 0, extent_of(range)});
      }
    }
    std::stable_sort(dim.terms.begin(), dim.terms.end(), [](const Site::Term& a, const Site::Term& b) {
      return std::abs(a.coefficient) > std::abs(b.coefficient);
    });
    site.dims.push_back(std::move(dim));
  }
  return site;
}

namespace {

// |c| * (extent - 1), saturated.
std::int64_t spread(std::int64_t coefficient, std::int64_t extent) {
  const __int128 s = static_cast<__int128>(std::abs(coefficient)) * (extent - 1);
  return s > kUnknown ? kUnknown : static_cast<std::int64_t>(s);
}

// One term of a dim as the separation test sees it; `atom` is null for what need not be told apart.
struct Plain {
  std::int64_t coefficient;
  std::int64_t extent;
  const IndexAtom* atom;
};

bool holds(const std::vector<IndexAtom>& atoms, const IndexAtom& atom) {
  return std::find(atoms.begin(), atoms.end(), atom) != atoms.end();
}
// The atoms that a dim determines, and whether it determines all: each larger than all smaller terms together, all
// larger ones likewise.
bool separated(std::vector<Plain> terms, std::vector<IndexAtom>& into) {
  std::stable_sort(terms.begin(), terms.end(),
                   [](const Plain& a, const Plain& b) { return std::abs(a.coefficient) > std::abs(b.coefficient); });
  for (std::size_t i = 0; i < terms.size(); ++i) {
    std::int64_t below = 0;
    for (std::size_t j = i + 1; j < terms.size(); ++j)
      below = std::min(kUnknown, below + spread(terms[j].coefficient, terms[j].extent));
    if (terms[i].extent > 1 && std::abs(terms[i].coefficient) <= below) return false;
    if (terms[i].atom && !holds(into, *terms[i].atom)) into.push_back(*terms[i].atom);
  }
  return true;
}

// E / c and E % c together determine E.
void add_wholes(std::vector<IndexAtom>& found, const VariableRanges& ranges) {
  for (std::size_t before = 0; before != found.size();) {
    before = found.size();
    for (std::size_t i = 0; i < before; ++i) {
      if (found[i].kind != AtomKind::remainder) continue;
      const IndexAtom remainder = found[i];
      const Index quotient = (*remainder.inner / remainder.divisor).simplify(ranges);
      if (!std::all_of(quotient.terms().begin(), quotient.terms().end(),
                       [&](const IndexTerm& t) { return holds(found, t.atom); }))
        continue;
      std::vector<Plain> terms;
      for (const IndexTerm& t : remainder.inner->terms())
        terms.push_back({t.coefficient, extent_of(Index::of(t.atom).interval(ranges)), &t.atom});
      separated(std::move(terms), found);
    }
  }
}

VarId variable_of(const Site::Term& t) { return t.atom.kind == AtomKind::variable ? t.atom.id : -1; }

// All variables of the atom belong to common loops; it holds no loaded value.
bool is_common(const IndexAtom& atom, const std::vector<const ForStmt*>& common) {
  bool all = true;
  Index::of(atom).for_each_leaf([&](const IndexAtom& leaf) {
    all = all && leaf.kind == AtomKind::variable &&
          std::any_of(common.begin(), common.end(), [&](const ForStmt* loop) { return loop->variable == leaf.id; });
  });
  return all;
}

// The same variable terms, own loops of equal extent corresponding; differing constants are one more serial term.
bool same_terms(const Site& a, const Site& b, std::size_t d, const std::vector<const ForStmt*>& common,
                std::vector<IndexAtom>& found) {
  const Site::Dim &x = a.dims[d], &y = b.dims[d];
  if (x.terms.size() != y.terms.size()) return false;
  std::vector<Plain> terms;
  for (std::size_t i = 0; i < x.terms.size(); ++i) {
    const Site::Term &s = x.terms[i], &t = y.terms[i];
    if (s.coefficient != t.coefficient || s.extent != t.extent || s.low != t.low) return false;
    const bool shared = is_common(s.atom, common);
    if (shared ? !(s.atom == t.atom) : is_common(t.atom, common)) return false;
    const bool own = variable_of(s) >= 0 && variable_of(t) >= 0;  // own loops correspond
    if (!shared && !own) return false;
    terms.push_back({s.coefficient, s.extent, shared ? &s.atom : nullptr});
  }
  const std::int64_t difference = std::abs(x.constant - y.constant);
  if (difference != 0) terms.push_back({difference, 2, nullptr});
  separated(std::move(terms), found);
  return true;
}

// Common terms over one remainder that holds everything else of both sites: own loops, and what one site alone has
// because a condition around the other holds it at one value.
void joint(const Site& a, const Site& b, std::size_t d, const std::vector<const ForStmt*>& common,
           std::vector<IndexAtom>& found) {
  const auto in = [](const Site::Term& t, const Site::Dim& dim) {
    return std::any_of(dim.terms.begin(), dim.terms.end(), [&](const Site::Term& other) {
      return other.coefficient == t.coefficient && other.atom == t.atom;
    });
  };
  std::vector<Plain> terms;
  __int128 low = 0, high = 0;
  for (const Site* site : {&a, &b}) {
    const Site::Dim &own = site->dims[d], &other = (site == &a ? b : a).dims[d];
    __int128 lo = own.constant, hi = lo;
    for (const Site::Term& t : own.terms) {
      if (is_common(t.atom, common) && in(t, other)) {
        if (site == &a) terms.push_back({t.coefficient, t.extent, &t.atom});
        continue;
      }
      if (t.extent >= kUnknown || spread(t.coefficient, t.extent) >= kUnknown) return;
      const __int128 at_low = static_cast<__int128>(t.coefficient) * t.low;
      const __int128 at_high = static_cast<__int128>(t.coefficient) * (t.low + t.extent - 1);
      lo += std::min(at_low, at_high), hi += std::max(at_low, at_high);
    }
    if (lo < -kUnknown || hi > kUnknown) return;
    low = site == &a ? lo : std::min(low, lo);
    high = site == &a ? hi : std::max(high, hi);
  }
  // The rest stands below all common terms, as one term of coefficient 1.
  __int128 below = high - low;
  for (const Plain& t : terms) below += spread(t.coefficient, t.extent);
  for (const Plain& t : terms) {
    below -= spread(t.coefficient, t.extent);
    if (std::abs(t.coefficient) <= below) return;
    found.push_back(*t.atom);
  }
}

// How far the paths are the same, to the side of each `if`.
std::size_t common_path(const Site& a, const Site& b) {
  std::size_t i = 0;
  const auto same = [](const Enclosing& x, const Enclosing& y) {
    return x.loop == y.loop && x.choice == y.choice && x.in_else == y.in_else;
  };
  while (i < a.path.size() && i < b.path.size() && same(a.path[i], b.path[i])) ++i;
  return i;
}

// Neither the bounds nor the residues of the two ever agree.
bool never_equal(const Index& x, const Index& y, const Facts& x_facts, const Facts& y_facts) {
  std::int64_t common = 0;
  for (const Index* index : {&x, &y})
    for (const IndexTerm& t : index->terms()) common = std::gcd(common, t.coefficient);
  const std::int64_t difference = x.constant() - y.constant();
  if (common == 0 ? difference != 0 : difference % common != 0) return true;
  const auto x_low = x_facts.at_least(x), y_high = y_facts.at_most(y);
  if (x_low && y_high && *y_high < *x_low) return true;
  const auto x_high = x_facts.at_most(x), y_low = y_facts.at_least(y);
  return x_high && y_low && *x_high < *y_low;
}

// The same in iterations of common loops that may differ: where large terms of both are equal wherever the sums are,
// because all the rest stays below them, what remains beside those must agree, and never does.
bool never_meet(const Index& x, const Index& y, const std::vector<const ForStmt*>& common, const Facts& x_facts,
                const Facts& y_facts, const VariableRanges& ranges) {
  if (never_equal(x, y, x_facts, y_facts)) return true;
  std::vector<Plain> shared;
  for (const IndexTerm& t : x.terms()) {
    const bool in_both = std::any_of(y.terms().begin(), y.terms().end(), [&](const IndexTerm& other) {
      return other.coefficient == t.coefficient && other.atom == t.atom;
    });
    if (in_both && is_common(t.atom, common))
      shared.push_back({t.coefficient, extent_of(Index::of(t.atom).interval(ranges)), &t.atom});
  }
  std::stable_sort(shared.begin(), shared.end(),
                   [](const Plain& a, const Plain& b) { return std::abs(a.coefficient) > std::abs(b.coefficient); });
  Index rest_x = x, rest_y = y;
  std::vector<Plain> equal;
  for (const Plain& t : shared) {
    equal.push_back(t);
    rest_x = rest_x - Index::of(*t.atom) * t.coefficient, rest_y = rest_y - Index::of(*t.atom) * t.coefficient;
    const auto x_low = x_facts.at_least(rest_x), x_high = x_facts.at_most(rest_x), y_low = y_facts.at_least(rest_y),
               y_high = y_facts.at_most(rest_y);
    if (!x_low || !x_high || !y_low || !y_high) continue;
    std::vector<Plain> terms = equal;
    terms.push_back({1, std::max(*x_high, *y_high) - std::min(*x_low, *y_low) + 1, nullptr});
    std::vector<IndexAtom> ignored;
    if (separated(std::move(terms), ignored) && never_equal(rest_x, rest_y, x_facts, y_facts)) return true;
  }
  return false;
}

// One number for every element: the one whose digits the dims are, where they are.
Index weighed(const Site& site, const std::vector<std::int64_t>& weights) {
  for (const Site::Digits& digits : site.digits)
    if (digits.weights == weights) return digits.number;
  Index sum;
  for (std::size_t d = 0; d < weights.size(); ++d) sum = sum + site.place->index[d] * weights[d];
  return sum;
}

bool is_part(const IndexTerm& t) { return t.atom.inner != nullptr; }

// The sum with E * c in place of E / k * (c * k) + E % k * c.
Index joined(Index sum, const VariableRanges& ranges) {
  const auto parts = [](const Index& i) { return std::count_if(i.terms().begin(), i.terms().end(), is_part); };
  for (bool changed = true; changed;) {
    changed = false;
    for (const IndexTerm& t : sum.terms()) {
      if (t.atom.kind != AtomKind::remainder) continue;
      const Index& whole = *t.atom.inner;
      const Index quotient = (whole / t.atom.divisor).simplify(ranges);
      const Index next = sum + (whole - Index::of(t.atom) - quotient * t.atom.divisor) * t.coefficient;
      if (parts(next) >= parts(sum)) continue;
      sum = next, changed = true;
      break;
    }
  }
  return sum;
}

// The two never agree in the number of their element, counted with the dims in any order (as in memory, where these are
// many): where these are parts of one number, its bounds are those of the loops.
bool apart_in_some_order(const Site& a, const Site& b, const Memory& memory,
                         const std::function<bool(const Index&, const Index&)>& never) {
  constexpr std::size_t kMostDims = 4;  // 24 orders
  std::vector<std::size_t> order;
  bool parts = false;
  for (std::size_t d = 0; d < memory.dims.size(); ++d) {
    if (memory.dims[d] != 1) order.push_back(d);
    for (const Site* site : {&a, &b}) {
      const Index::Terms& terms = site->place->index[d].terms();
      parts = parts || std::any_of(terms.begin(), terms.end(), is_part);
    }
  }
  if (!parts) return false;
  const bool in_any = order.size() <= kMostDims;
  if (!in_any) std::reverse(order.begin(), order.end());  // the last dim counts ones
  do {
    std::vector<std::int64_t> weights(memory.dims.size(), 0);
    std::int64_t below = 1;
    for (const std::size_t d : order) weights[d] = below, below *= memory.dims[d];
    if (never(joined(weighed(a, weights), a.ranges), joined(weighed(b, weights), b.ranges))) return true;
  } while (in_any && std::next_permutation(order.begin(), order.end()));
  return false;
}

// Different constants beside the same terms, each of which is a digit of its own: no element has both.
bool apart_by_digits(const Site& a, const Site& b, std::size_t d) {
  const Site::Dim &x = a.dims[d], &y = b.dims[d];
  const std::int64_t difference = std::abs(x.constant - y.constant);
  if (difference == 0 || x.terms.size() != y.terms.size()) return false;
  std::vector<Plain> terms{{difference, 2, nullptr}};
  for (std::size_t i = 0; i < x.terms.size(); ++i) {
    const Site::Term &s = x.terms[i], &t = y.terms[i];
    if (s.coefficient != t.coefficient || s.extent != t.extent || s.low != t.low) return false;
    terms.push_back({s.coefficient, s.extent, nullptr});
  }
  std::vector<IndexAtom> none;
  return separated(std::move(terms), none);
}

}  // namespace

std::vector<const ForStmt*> common_loops(const Site& a, const Site& b) {
  std::vector<const ForStmt*> loops;
  for (std::size_t i = 0; i < common_path(a, b); ++i)
    if (a.path[i].loop) loops.push_back(a.path[i].loop);
  return loops;
}

bool holds(const std::vector<IndexAtom>& atoms, VarId variable) {
  return holds(atoms, {AtomKind::variable, variable, nullptr, 0});
}

std::vector<IndexAtom> told_by_element(const Site& site) {
  std::vector<IndexAtom> found;
  for (const Site::Dim& dim : site.dims) {
    std::vector<Plain> terms;
    for (const Site::Term& t : dim.terms) terms.push_back({t.coefficient, t.extent, &t.atom});
    separated(std::move(terms), found);
  }
  add_wholes(found, site.ranges);
  return found;
}

std::vector<IndexAtom> equal_where_they_meet(const Site& a, const Site& b, const std::vector<const ForStmt*>& common) {
  std::vector<IndexAtom> found;
  for (std::size_t d = 0; d < a.dims.size(); ++d) {
    std::vector<IndexAtom> of_dim;
    if (!same_terms(a, b, d, common, of_dim)) {
      of_dim.clear();
      joint(a, b, d, common, of_dim);
    }
    found.insert(found.end(), of_dim.begin(), of_dim.end());
  }
  add_wholes(found, a.ranges);
  return found;
}

bool always_apart(const Site& a, const Site& b) {
  const Facts a_facts(a.path), b_facts(b.path);
  const std::vector<const ForStmt*> common = common_loops(a, b);
  const auto never = [&](const Index& x, const Index& y) {
    return never_meet(x, y, common, a_facts, b_facts, a.ranges);
  };
  for (std::size_t d = 0; d < a.dims.size(); ++d)
    if (apart_by_digits(a, b, d) || never(a.place->index[d], b.place->index[d])) return true;
  for (const Site* site : {&a, &b})
    for (const Site::Digits& digits : site->digits)
      if (never(weighed(a, digits.weights), weighed(b, digits.weights))) return true;
  return apart_in_some_order(a, b, *a.memory, never);
}

bool apart_in_one_iteration(const Site& a, const Site& b) {
  Path both = a.path;  // common loops have one variable, all others are different ones
  const std::size_t common = common_path(a, b);
  if (common < a.path.size() && common < b.path.size() && a.path[common].choice &&
      a.path[common].choice == b.path[common].choice)
    return true;  // opposite sides of one `if`
  both.insert(both.end(), b.path.begin() + static_cast<std::ptrdiff_t>(common), b.path.end());
  const Facts facts(both);
  for (std::size_t d = 0; d < a.dims.size(); ++d) {
    const Index difference = a.place->index[d] - b.place->index[d];
    if (facts.proves_non_negative(difference - Index(1)) || facts.proves_non_negative(Index(-1) - difference))
      return true;
  }
  return false;
}

bool same_element(const Site& a, const Site& b) {
  const std::vector<const ForStmt*> common = common_loops(a, b);
  for (std::size_t d = 0; d < a.dims.size(); ++d) {
    std::vector<IndexAtom> ignored;
    if (a.dims[d].constant != b.dims[d].constant || !same_terms(a, b, d, common, ignored)) return false;
  }
  return true;
}

}  // namespace fusejit::ir
