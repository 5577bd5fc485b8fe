// V1: no two parallel iterations of a phase store to one element. V2: a task reads only its own stores of the phase.
#include <algorithm>
#include <map>

#include "ir/kernel/sites.h"

namespace fusejit::ir {
namespace {

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
      sites[{phase, place->memory}].push_back(make_site(stmt, memory(place->memory), path, declared[place->memory]));
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

  void single(const Site& s) {
    const std::vector<IndexAtom> found = told_by_element(s);
    for (const Enclosing& e : s.path)
      if (e.loop && is_parallel(e.loop->binding) && repeats(*e.loop, s) && !holds(found, e.loop->variable))
        broken(s.stmt->at, "V1",
               fmt::format("different {} may store to one element of {}", names_.variable(e.loop->variable),
                           names_.place(*s.place)));
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

  void pair(const Site& a, const Site& b, const char* rule) {
    const std::vector<const ForStmt*> common = common_loops(a, b);
    std::vector<VarId> needed;
    for (const ForStmt* loop : common)
      if (is_parallel(loop->binding) && may_differ(*loop, a, b)) needed.push_back(loop->variable);
    if (needed.empty()) return;
    const std::vector<IndexAtom> found = equal_where_they_meet(a, b, common);
    const bool apart = std::all_of(needed.begin(), needed.end(), [&](VarId v) { return holds(found, v); });
    if (apart || always_apart(a, b)) return;
    if (rule[1] == '1') {
      broken(a.stmt->at, rule,
             fmt::format("{} and {} (line {}) may be the same element in different iterations", names_.place(*a.place),
                         names_.place(*b.place), b.stmt->at.line));
    }
    broken(a.stmt->at, rule,
           fmt::format("{} may read what another iteration stores to {} (line {})", names_.place(*a.place),
                       names_.place(*b.place), b.stmt->at.line));
  }

  const Kernel& k_;
  const Names names_;
};

}  // namespace

void verify_writes(const Kernel& kernel) { Writes(kernel).run(); }

}  // namespace fusejit::ir
