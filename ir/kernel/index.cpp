// Canonical form of index expressions: the rules of kernel-ir.md §6.
#include "ir/kernel/index.h"

#include <algorithm>
#include <numeric>
#include <vector>

#include "ir/base/check.h"

namespace fusejit::ir {
namespace {

// Deep nests of / and % are legal but never needed; the bounds keep recursion over an expression shallow and what is
// done with it short.
constexpr int kMaxDepth = 32;
constexpr int kMaxAtoms = 2048;
constexpr std::int64_t kLimit = std::int64_t{1} << 62;

[[noreturn, gnu::noinline]] void throw_too_large() {
  throw UserError("an index expression leaves the range of 62 bits");
}
inline std::int64_t checked(__int128 value) {
  if (value <= -kLimit || value >= kLimit) throw_too_large();
  return static_cast<std::int64_t>(value);
}

std::int64_t floor_mod(std::int64_t a, std::int64_t b) { return a % b + (a % b < 0 ? b : 0); }

std::strong_ordering order(const Index& a, const Index& b);

// Variables by id, then values by id, then quotients, then remainders by their contents.
std::strong_ordering order(const IndexAtom& a, const IndexAtom& b) {
  if (a.kind != b.kind) return a.kind <=> b.kind;
  if (a.kind == AtomKind::variable || a.kind == AtomKind::value) return a.id <=> b.id;
  if (a.divisor != b.divisor) return a.divisor <=> b.divisor;
  return a.inner == b.inner ? std::strong_ordering::equal : order(*a.inner, *b.inner);
}

std::strong_ordering order(const Index& a, const Index& b) {
  const std::size_t n = std::min(a.terms().size(), b.terms().size());
  for (std::size_t i = 0; i < n; ++i) {
    if (auto c = order(a.terms()[i].atom, b.terms()[i].atom); c != 0) return c;
    if (auto c = a.terms()[i].coefficient <=> b.terms()[i].coefficient; c != 0) return c;
  }
  if (a.terms().size() != b.terms().size()) return a.terms().size() <=> b.terms().size();
  return a.constant() <=> b.constant();
}

int depth(const Index& index) {
  int deepest = 0;
  for (const IndexTerm& t : index.terms())
    if (t.atom.inner) deepest = std::max(deepest, 1 + depth(*t.atom.inner));
  return deepest;
}

IndexAtom make_atom(AtomKind kind, Index inner, std::int64_t divisor) {
  FJ_CHECK(depth(inner) < kMaxDepth, "an index expression nests more than {} divisions", kMaxDepth);
  FJ_CHECK(inner.atoms() < kMaxAtoms, "an index expression has more than {} atoms", kMaxAtoms);
  return {kind, -1, std::make_shared<const Index>(std::move(inner)), divisor};
}

std::optional<Interval> scaled(Interval i, std::int64_t factor) {
  const __int128 a = static_cast<__int128>(i.low) * factor, b = static_cast<__int128>(i.high) * factor;
  if (std::min(a, b) <= -kLimit || std::max(a, b) >= kLimit) return std::nullopt;
  return Interval{static_cast<std::int64_t>(std::min(a, b)), static_cast<std::int64_t>(std::max(a, b))};
}

std::optional<Interval> interval_of(const IndexAtom& atom, const RangeOf& ranges) {
  if (!atom.inner) return ranges ? ranges(atom) : std::nullopt;
  const std::optional<Interval> inner = atom.inner->interval(ranges);
  const std::int64_t c = atom.divisor;
  if (atom.kind == AtomKind::quotient) {
    if (!inner) return std::nullopt;
    return Interval{floor_div(inner->low, c), floor_div(inner->high, c)};
  }
  if (inner && floor_div(inner->low, c) == floor_div(inner->high, c))
    return Interval{floor_mod(inner->low, c), floor_mod(inner->high, c)};
  return Interval{0, c - 1};
}

}  // namespace

// Builds canonical sums. The only place that changes the terms of an Index.
class IndexSum {
 public:
  void add(const IndexAtom& atom, std::int64_t coefficient) {
    add_term(atom, coefficient);
    recombine_ = recombine_ || atom.inner;
  }
  void add(std::int64_t constant) { sum_.constant_ = checked(static_cast<__int128>(sum_.constant_) + constant); }
  void add(const Index& index, std::int64_t factor = 1) {
    if (sum_.terms_.empty() && factor != 0) {  // canonical as it is, whatever the factor
      sum_.terms_ = index.terms();
      for (IndexTerm& t : sum_.terms_) t.coefficient = checked(static_cast<__int128>(t.coefficient) * factor);
      return add(checked(static_cast<__int128>(index.constant()) * factor));
    }
    for (const IndexTerm& t : index.terms()) add(t.atom, checked(static_cast<__int128>(t.coefficient) * factor));
    add(checked(static_cast<__int128>(index.constant()) * factor));
  }
  // `index` without one of its terms, where up to `more` terms are to follow.
  void start(const Index& index, std::size_t without, std::size_t more) {
    sum_.terms_.reserve(index.terms().size() + more);
    for (std::size_t i = 0; i < index.terms().size(); ++i)
      if (i != without) sum_.terms_.push_back(index.terms()[i]);
    sum_.constant_ = index.constant();
  }
  Index take() {
    while (recombine_) {
      recombine_ = false;
      recombine();
    }
    return std::move(sum_);
  }

 private:
  void add_term(const IndexAtom& atom, std::int64_t coefficient) {
    auto& terms = sum_.terms_;
    auto at = std::lower_bound(terms.begin(), terms.end(), atom,
                               [](const IndexTerm& t, const IndexAtom& a) { return order(t.atom, a) < 0; });
    if (at == terms.end() || order(at->atom, atom) != 0) {
      if (coefficient != 0) terms.insert(at, {coefficient, atom});
      return;
    }
    at->coefficient = checked(static_cast<__int128>(at->coefficient) + coefficient);
    if (at->coefficient == 0) terms.erase(at);
  }

  // Digits of one number next to each other become one digit: b*(E / b) + E % b = E, and
  // b*((E / b + m) % c) + E % b = (E + b*m) % (b*c).
  void recombine() {
    auto& terms = sum_.terms_;
    for (std::size_t high = 0; high < terms.size(); ++high) {
      for (std::size_t low = 0; low < terms.size(); ++low) {
        const IndexAtom& remainder = terms[low].atom;
        const std::int64_t coefficient = terms[low].coefficient;
        if (low == high || remainder.kind != AtomKind::remainder) continue;
        if (static_cast<__int128>(coefficient) * remainder.divisor != terms[high].coefficient) continue;
        const std::optional<Index> joined = join(terms[high].atom, remainder);
        if (!joined) continue;
        terms.erase(terms.begin() + static_cast<std::ptrdiff_t>(std::max(low, high)));
        terms.erase(terms.begin() + static_cast<std::ptrdiff_t>(std::min(low, high)));
        add(*joined, coefficient);
        recombine_ = true;
        return;
      }
    }
  }

  // low.divisor * high + low as one digit, if they are digits of one number.
  static std::optional<Index> join(const IndexAtom& high, const IndexAtom& low) {
    if (high.kind == AtomKind::quotient && high.divisor == low.divisor && *high.inner == *low.inner) return *low.inner;
    if (high.kind != AtomKind::remainder || high.inner->terms().size() != 1) return std::nullopt;
    const auto& [coefficient, quotient] = high.inner->terms()[0];
    if (coefficient != 1 || quotient.kind != AtomKind::quotient || quotient.divisor != low.divisor ||
        *quotient.inner != *low.inner)
      return std::nullopt;
    const Index number = *low.inner + Index(checked(static_cast<__int128>(low.divisor) * high.inner->constant()));
    return number % checked(static_cast<__int128>(low.divisor) * high.divisor);
  }

  Index sum_;
  bool recombine_ = false;
};

namespace {

// index = divisor * whole + rest, the rest's constant in [0, divisor) and no coefficient of it a multiple of divisor.
struct Split {
  Index whole;
  Index rest;
};
Split split(const Index& index, std::int64_t divisor) {
  IndexSum whole, rest;
  for (const IndexTerm& t : index.terms()) {
    if (t.coefficient % divisor == 0) {
      whole.add(t.atom, t.coefficient / divisor);
    } else {
      rest.add(t.atom, t.coefficient);
    }
  }
  whole.add(floor_div(index.constant(), divisor));
  rest.add(floor_mod(index.constant(), divisor));
  return {whole.take(), rest.take()};
}

std::int64_t common_factor(const Index& index, std::int64_t divisor) {
  std::int64_t g = divisor;
  for (const IndexTerm& t : index.terms()) g = std::gcd(g, t.coefficient);
  return g;
}

// (g*E + F) / (g*c) = E / c where 0 <= F < g. The same split serves the remainder: g*(E % c) + F.
struct Coarse {
  std::int64_t g;
  Index whole;  // E
  Index rest;   // F
};
std::optional<Coarse> coarsen(const Index& index, std::int64_t divisor, const RangeOf& ranges) {
  std::vector<std::int64_t> factors;
  for (const IndexTerm& t : index.terms()) factors.push_back(std::gcd(t.coefficient, divisor));
  std::sort(factors.rbegin(), factors.rend());
  for (std::int64_t g : factors) {
    if (g <= 1 || g == divisor) continue;
    Split parts = split(index, g);
    const std::optional<Interval> range = parts.rest.interval(ranges);
    if (range && range->low >= 0 && range->high < g) return Coarse{g, std::move(parts.whole), std::move(parts.rest)};
  }
  return std::nullopt;
}

Index simplified(const IndexAtom& atom, const RangeOf& ranges) {
  const std::int64_t c = atom.divisor;
  const Index inner = atom.inner->simplify(ranges);
  const bool quotient = atom.kind == AtomKind::quotient;
  if (const std::optional<Interval> range = inner.interval(ranges)) {
    const std::int64_t whole = floor_div(range->low, c);
    if (whole == floor_div(range->high, c)) return quotient ? Index(whole) : inner - Index(whole) * c;
  }
  if (const std::optional<Coarse> coarse = coarsen(inner, c, ranges)) {
    if (quotient) return coarse->whole / (c / coarse->g);
    return coarse->whole % (c / coarse->g) * coarse->g + coarse->rest;
  }
  return quotient ? inner / c : inner % c;
}

}  // namespace

bool operator==(const IndexAtom& a, const IndexAtom& b) { return order(a, b) == 0; }

Index Index::of(const IndexAtom& atom) {
  IndexSum sum;
  sum.add(atom, 1);
  return sum.take();
}

Index Index::variable(int var) { return of({AtomKind::variable, var, nullptr, 0}); }
Index Index::value(int value) { return of({AtomKind::value, value, nullptr, 0}); }

Index operator+(const Index& a, const Index& b) {
  IndexSum sum;
  sum.add(a), sum.add(b);
  return sum.take();
}

Index operator-(const Index& a, const Index& b) {
  IndexSum sum;
  sum.add(a), sum.add(b, -1);
  return sum.take();
}

Index operator*(const Index& a, std::int64_t factor) {
  IndexSum sum;
  if (factor != 0) sum.add(a, factor);
  return sum.take();
}

Index operator/(const Index& a, std::int64_t divisor) {
  FJ_CHECK(divisor > 0, "an index expression is divided by {}", divisor);
  Split parts = split(a, divisor);
  if (parts.rest.is_constant()) return std::move(parts.whole);
  const std::int64_t g = common_factor(parts.rest, divisor);
  if (g > 1) parts.rest = split(parts.rest, g).whole, divisor /= g;
  IndexSum sum;
  sum.add(parts.whole);
  // (F + E / a) / c = (a * F + E) / (a * c)
  const auto is_quotient = [](const IndexTerm& t) { return t.atom.kind == AtomKind::quotient; };
  const auto& terms = parts.rest.terms();
  const auto quotient = std::find_if(terms.begin(), terms.end(), is_quotient);
  if (quotient != terms.end() && quotient->coefficient == 1 &&
      std::count_if(terms.begin(), terms.end(), is_quotient) == 1) {
    const std::int64_t a = quotient->atom.divisor;
    sum.add((parts.rest.without(quotient->atom) * a + *quotient->atom.inner) /
            checked(static_cast<__int128>(a) * divisor));
  } else {
    sum.add(make_atom(AtomKind::quotient, parts.rest, divisor), 1);
  }
  return sum.take();
}

Index operator%(const Index& a, std::int64_t divisor) {
  FJ_CHECK(divisor > 0, "an index expression is taken modulo {}", divisor);
  Split parts = split(a, divisor);
  if (parts.rest.is_constant()) return std::move(parts.rest);
  const std::int64_t g = common_factor(parts.rest, divisor);
  Split fine = split(parts.rest, g);
  IndexSum sum;
  sum.add(make_atom(AtomKind::remainder, g > 1 ? std::move(fine.whole) : std::move(parts.rest), divisor / g), g);
  if (g > 1) sum.add(fine.rest);
  return sum.take();
}

int Index::atoms() const {
  int all = 0;
  for (const IndexTerm& t : terms_) all += 1 + (t.atom.inner ? t.atom.inner->atoms() : 0);
  return all;
}

std::int64_t Index::coefficient_of(int var) const {
  for (const IndexTerm& t : terms_)
    if (t.atom.kind == AtomKind::variable && t.atom.id == var) return t.coefficient;
  return 0;
}

Index Index::without(const IndexAtom& atom) const {
  Index rest = *this;
  erase_if(rest.terms_, [&](const IndexTerm& t) { return t.atom == atom; });
  return rest;
}

Index Index::replaced(const IndexTerm& term, const Index& value, std::int64_t factor, std::int64_t constant) const {
  IndexSum sum;
  sum.start(*this, static_cast<std::size_t>(&term - terms_.data()), value.terms().size());
  sum.add(value, factor), sum.add(constant);
  return sum.take();
}

bool Index::mentions(int var) const {
  bool found = false;
  for_each_leaf([&](const IndexAtom& leaf) { found = found || (leaf.kind == AtomKind::variable && leaf.id == var); });
  return found;
}

void Index::for_each_leaf(const std::function<void(const IndexAtom&)>& visit) const {
  for (const IndexTerm& t : terms_) {
    if (t.atom.inner) {
      t.atom.inner->for_each_leaf(visit);
    } else {
      visit(t.atom);
    }
  }
}

Index Index::substitute(const std::function<std::optional<Index>(const IndexAtom& leaf)>& replacement) const {
  IndexSum sum;
  sum.add(constant_);
  for (const IndexTerm& t : terms_) {
    if (t.atom.inner) {
      const Index inner = t.atom.inner->substitute(replacement);
      sum.add(t.atom.kind == AtomKind::quotient ? inner / t.atom.divisor : inner % t.atom.divisor, t.coefficient);
    } else if (std::optional<Index> by = replacement(t.atom)) {
      sum.add(*by, t.coefficient);
    } else {
      sum.add(t.atom, t.coefficient);
    }
  }
  return sum.take();
}

Index Index::simplify(const RangeOf& ranges) const {
  if (std::none_of(terms_.begin(), terms_.end(), [](const IndexTerm& t) { return t.atom.inner != nullptr; }))
    return *this;
  IndexSum sum;
  sum.add(constant_);
  for (const IndexTerm& t : terms_) {
    if (t.atom.inner) {
      sum.add(simplified(t.atom, ranges), t.coefficient);
    } else {
      sum.add(t.atom, t.coefficient);
    }
  }
  Index result = sum.take();
  return result == *this ? result : result.simplify(ranges);
}

std::optional<Interval> Index::interval(const RangeOf& ranges) const {
  Interval total{constant_, constant_};
  for (const IndexTerm& t : terms_) {
    std::optional<Interval> atom = interval_of(t.atom, ranges);
    if (atom) atom = scaled(*atom, t.coefficient);
    if (!atom || __builtin_add_overflow(total.low, atom->low, &total.low) ||
        __builtin_add_overflow(total.high, atom->high, &total.high))
      return std::nullopt;
  }
  return total;
}

std::int64_t Index::evaluate(const std::function<std::int64_t(const IndexAtom&)>& leaf) const {
  __int128 total = constant_;
  for (const IndexTerm& t : terms_) {
    std::int64_t atom;
    if (t.atom.inner) {
      const std::int64_t inner = t.atom.inner->evaluate(leaf);
      atom = t.atom.kind == AtomKind::quotient ? floor_div(inner, t.atom.divisor) : floor_mod(inner, t.atom.divisor);
    } else {
      atom = leaf(t.atom);
    }
    total += static_cast<__int128>(t.coefficient) * atom;
  }
  return checked(total);
}

}  // namespace fusejit::ir
