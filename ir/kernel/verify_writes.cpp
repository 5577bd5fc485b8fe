// V1: no two parallel iterations of a phase store to one element. V2: a task reads only its own stores of the phase.
#include <algorithm>
#include <map>
#include <numeric>

#include "ir/kernel/verify.h"

namespace fusejit::ir {
namespace {

constexpr std::int64_t kUnknown = std::int64_t{1} << 60;  // an extent that separates nothing

bool is_parallel(Binding b) { return b != Binding::none && b != Binding::unroll; }

// A load or store of a memory, with its index made ready for the separation test.
struct Site {
  const Stmt* stmt;
  const Place* place;
  bool is_store;
  Path path;  // inside the declaration of a local
  VariableRanges ranges;
  struct Term {
    std::int64_t coefficient;
    IndexAtom atom;
    std::int64_t low;     // the atom is in low .. low + extent - 1
    std::int64_t extent;  // kUnknown if not known
  };
  struct Dim {
    std::vector<Term> terms;  // by falling |coefficient|; variables held by == are constants
    std::int64_t constant;
  };
  std::vector<Dim> dims;
};

std::int64_t extent_of(const std::optional<Interval>& range) {
  return range ? std::min(kUnknown, range->high - range->low + 1) : kUnknown;
}

// The value that an enclosing == gives to a variable.
std::optional<std::int64_t> fixed_value(VarId variable, const Path& path) {
  for (const Enclosing& e : path) {
    if (!e.choice || e.in_else) continue;
    for (const Compare& c : e.choice->compares) {
      const std::vector<IndexTerm>& terms = c.left.terms();
      if (c.kind == CompareKind::eq && terms.size() == 1 && terms[0].atom.kind == AtomKind::variable &&
          terms[0].atom.id == variable && c.right % terms[0].coefficient == 0)
        return c.right / terms[0].coefficient;
    }
  }
  return std::nullopt;
}

bool same_fixed(VarId variable, const Path& a, const Path& b) {
  const std::optional<std::int64_t> value = fixed_value(variable, a);
  return value && value == fixed_value(variable, b);
}

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

Site make_site(const Stmt& stmt, const Path& path, std::size_t declared_at) {
  Site site{&stmt, touched(stmt), std::holds_alternative<StoreStmt>(stmt.node), {}, {}, {}};
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
        const std::optional<Interval> range = Index::of(t.atom).interval(site.ranges);
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
bool holds(const std::vector<IndexAtom>& atoms, VarId v) { return holds(atoms, {AtomKind::variable, v, nullptr, 0}); }

// The atoms that a dim determines: each larger than all smaller terms together, all larger ones likewise.
void separated(std::vector<Plain> terms, std::vector<IndexAtom>& into) {
  std::stable_sort(terms.begin(), terms.end(),
                   [](const Plain& a, const Plain& b) { return std::abs(a.coefficient) > std::abs(b.coefficient); });
  for (std::size_t i = 0; i < terms.size(); ++i) {
    std::int64_t below = 0;
    for (std::size_t j = i + 1; j < terms.size(); ++j)
      below = std::min(kUnknown, below + spread(terms[j].coefficient, terms[j].extent));
    if (terms[i].extent > 1 && std::abs(terms[i].coefficient) <= below) return;
    if (terms[i].atom && !holds(into, *terms[i].atom)) into.push_back(*terms[i].atom);
  }
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

class Writes {
 public:
  explicit Writes(const Kernel& kernel) : k_(kernel), names_(kernel) {}

  void run() {
    std::map<MemId, std::size_t> declared;  // depth of a local's declaration
    std::map<std::pair<std::size_t, MemId>, std::vector<Site>> sites;
    for_each_with_path(k_, [&](const Stmt& stmt, const Path& path, std::size_t phase) {
      if (const auto* local = std::get_if<LocalStmt>(&stmt.node)) declared[local->memory] = path.size();
      const Place* place = touched(stmt);
      if (!place || memory(place->memory).kind == MemKind::read) return;
      sites[{phase, place->memory}].push_back(make_site(stmt, path, declared[place->memory]));
    });
    for (const auto& entry : sites) memory_of_phase(entry.second);
  }

 private:
  const Memory& memory(MemId id) const { return k_.memories[static_cast<std::size_t>(id)]; }

  void memory_of_phase(const std::vector<Site>& sites) {
    std::vector<const Site*> stores;
    for (const Site& s : sites)
      if (s.is_store) stores.push_back(&s);
    if (stores.empty()) return;
    for (const Site* s : stores) {
      if (memory(s->place->memory).dtype == DType::b1) whole_bytes(*s);
      single(*s);
    }
    // Sites of equal terms are tested together, so that many unrolled stores cost little.
    for (std::size_t i = 0; i < stores.size(); ++i)
      for (std::size_t j = i + 1; j < stores.size(); ++j) pair(*stores[j], *stores[i], "V1");
    for (const Site& load : sites) {
      if (load.is_store) continue;
      for (const Site* store : stores) pair(load, *store, "V2");
    }
  }

  // Parallel variables of extent > 1 that stay free.
  std::vector<VarId> parallel_variables(const Site& s) const {
    std::vector<VarId> list;
    for (const Enclosing& e : s.path) {
      if (!e.loop || !is_parallel(e.loop->binding) || fixed_value(e.loop->variable, s.path)) continue;
      if (extent_of(s.ranges({AtomKind::variable, e.loop->variable, nullptr, 0})) > 1) list.push_back(e.loop->variable);
    }
    return list;
  }

  void single(const Site& s) {
    std::vector<IndexAtom> found;
    for (const Site::Dim& dim : s.dims) {
      std::vector<Plain> terms;
      for (const Site::Term& t : dim.terms) terms.push_back({t.coefficient, t.extent, &t.atom});
      separated(std::move(terms), found);
    }
    add_wholes(found, s.ranges);
    for (VarId v : parallel_variables(s))
      if (!holds(found, v))
        broken(s.stmt->at, "V1",
               fmt::format("different {} may store to one element of {}", names_.variable(v), names_.place(*s.place)));
  }

  void whole_bytes(const Site& s) {
    const ForStmt* lanes = nullptr;
    for (const Enclosing& e : s.path)
      if (e.loop && e.loop->binding == Binding::vector) lanes = e.loop;
    const Index& last = s.place->index.back();
    bool good = lanes && lanes->high[0].constant() % 8 == 0 && last.coefficient_of(lanes->variable) == 1 &&
                last.constant() % 8 == 0;
    for (const IndexTerm& t : last.terms())
      if (good && !(t.atom.kind == AtomKind::variable && t.atom.id == lanes->variable)) good = t.coefficient % 8 == 0;
    if (!good) broken(s.stmt->at, "V1", fmt::format("{} does not store whole bytes of bits", names_.place(*s.place)));
  }

  // Loops around both: the common start of their paths. The sides of one `if` do not end it.
  static std::vector<const ForStmt*> common_loops(const Site& a, const Site& b) {
    std::vector<const ForStmt*> loops;
    for (std::size_t i = 0; i < std::min(a.path.size(), b.path.size()); ++i) {
      if (a.path[i].loop != b.path[i].loop || a.path[i].choice != b.path[i].choice) break;
      if (a.path[i].loop) loops.push_back(a.path[i].loop);
      if (a.path[i].in_else != b.path[i].in_else) break;
    }
    return loops;
  }

  void pair(const Site& a, const Site& b, const char* rule) {
    const std::vector<const ForStmt*> common = common_loops(a, b);
    std::vector<VarId> needed;
    for (const ForStmt* loop : common)
      if (is_parallel(loop->binding) && extent_of(a.ranges({AtomKind::variable, loop->variable, nullptr, 0})) > 1 &&
          !same_fixed(loop->variable, a.path, b.path))
        needed.push_back(loop->variable);
    if (needed.empty()) return;
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
    const bool apart = std::all_of(needed.begin(), needed.end(), [&](VarId v) { return holds(found, v); });
    if (apart || disjoint(a, b)) return;
    if (rule[1] == '1') {
      broken(a.stmt->at, rule,
             fmt::format("{} and {} (line {}) may be the same element in different iterations", names_.place(*a.place),
                         names_.place(*b.place), b.stmt->at.line));
    }
    broken(a.stmt->at, rule,
           fmt::format("{} may read what another iteration stores to {} (line {})", names_.place(*a.place),
                       names_.place(*b.place), b.stmt->at.line));
  }

  // The same variable terms, own loops of equal extent corresponding; differing constants are one more serial term.
  static bool same_terms(const Site& a, const Site& b, std::size_t d, const std::vector<const ForStmt*>& common,
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

  // Common terms over one remainder that holds everything else of both sites.
  static void joint(const Site& a, const Site& b, std::size_t d, const std::vector<const ForStmt*>& common,
                    std::vector<IndexAtom>& found) {
    std::vector<Plain> terms;
    const Site* sites[2] = {&a, &b};
    std::vector<Site::Term> shared[2];
    for (int i : {0, 1})
      for (const Site::Term& t : sites[i]->dims[d].terms)
        if (is_common(t.atom, common)) shared[i].push_back(t);
    __int128 low = 0, high = 0;
    for (int i : {0, 1}) {
      __int128 lo = sites[i]->dims[d].constant, hi = lo;
      for (const Site::Term& t : sites[i]->dims[d].terms) {
        if (is_common(t.atom, common)) continue;
        if (t.extent >= kUnknown || spread(t.coefficient, t.extent) >= kUnknown) return;
        const __int128 at_low = static_cast<__int128>(t.coefficient) * t.low;
        const __int128 at_high = static_cast<__int128>(t.coefficient) * (t.low + t.extent - 1);
        lo += std::min(at_low, at_high), hi += std::max(at_low, at_high);
      }
      if (lo < -kUnknown || hi > kUnknown) return;
      low = i == 0 ? lo : std::min(low, lo);
      high = i == 0 ? hi : std::max(high, hi);
    }
    if (shared[0].size() != shared[1].size()) return;
    for (std::size_t i = 0; i < shared[0].size(); ++i) {
      if (shared[0][i].coefficient != shared[1][i].coefficient || !(shared[0][i].atom == shared[1][i].atom)) return;
      terms.push_back({shared[0][i].coefficient, shared[0][i].extent, &shared[0][i].atom});
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

  // All variables of the atom belong to common loops; it holds no loaded value.
  static bool is_common(const IndexAtom& atom, const std::vector<const ForStmt*>& common) {
    bool all = true;
    Index::of(atom).for_each_leaf([&](const IndexAtom& leaf) {
      all = all && leaf.kind == AtomKind::variable &&
            std::any_of(common.begin(), common.end(), [&](const ForStmt* loop) { return loop->variable == leaf.id; });
    });
    return all;
  }

  // Boxes that do not meet in some dim.
  static bool disjoint(const Site& a, const Site& b) {
    const Facts of_a(a.path), of_b(b.path);
    for (std::size_t d = 0; d < a.dims.size(); ++d) {
      const Index &x = a.place->index[d], &y = b.place->index[d];
      const auto a_low = of_a.at_least(x), a_high = of_a.at_most(x);
      const auto b_low = of_b.at_least(y), b_high = of_b.at_most(y);
      if ((a_high && b_low && *a_high < *b_low) || (b_high && a_low && *b_high < *a_low)) return true;
    }
    return false;
  }

  const Kernel& k_;
  const Names names_;
};

}  // namespace

void verify_writes(const Kernel& kernel) { Writes(kernel).run(); }

}  // namespace fusejit::ir
