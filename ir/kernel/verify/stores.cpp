// V11: no element of a buffer or of work is stored twice, phases included, unless what was there has been read.
//
// A second store over an unread one is what becomes of partial results that are handed from phase to phase, or from one
// round of a loop to the next, and forgotten: the kernel runs, and its sums are those of the last part alone.
#include <algorithm>
#include <map>

#include "ir/kernel/sites.h"

namespace fusejit::ir {
namespace {

class Stores {
 public:
  explicit Stores(const Kernel& kernel) : k_(kernel), names_(kernel) {}

  void run() {
    std::map<MemId, std::vector<Access>> accesses;
    for_each_with_path(k_, [&](const Stmt& stmt, const Path& path, std::size_t phase) {
      const Place* place = touched(stmt);
      if (!place) return;
      const Memory& memory = k_.memories[static_cast<std::size_t>(place->memory)];
      if (memory.kind == MemKind::read || memory.is_local()) return;
      accesses[place->memory].push_back({phase, make_site(stmt, memory, path, 0)});
    });
    for (const auto& entry : accesses) one_memory(entry.second);
  }

 private:
  struct Access {
    std::size_t phase;
    Site site;
  };

  void one_memory(const std::vector<Access>& accesses) {
    for (std::size_t i = 0; i < accesses.size(); ++i) {
      const Access& later = accesses[i];
      if (!later.site.is_store) continue;
      single(later, accesses);
      for (std::size_t j = 0; j < i; ++j) {
        const Access& earlier = accesses[j];
        if (!earlier.site.is_store || apart(later, earlier)) continue;
        if (reads_first(later, {}, accesses)) continue;
        fail(later, fmt::format("{} may be what line {} has stored to {}, unread", names_.place(*later.site.place),
                                earlier.site.stmt->at.line, names_.place(*earlier.site.place)));
      }
    }
  }

  void single(const Access& store, const std::vector<Access>& accesses) {
    const std::vector<IndexAtom> found = told_by_element(store.site);
    std::vector<const ForStmt*> again;
    for (const Enclosing& e : store.site.path)
      if (e.loop && repeats(*e.loop, store.site) && !holds(found, e.loop->variable)) again.push_back(e.loop);
    if (again.empty() || reads_first(store, again, accesses)) return;
    fail(store, fmt::format("{} is stored again for another {}, unread", names_.place(*store.site.place),
                            names_.variable(again[0]->variable)));
  }

  // In every round of the loops that come back to an element there is a load of it in front of the store.
  static bool reads_first(const Access& store, const std::vector<const ForStmt*>& again,
                          const std::vector<Access>& accesses) {
    return std::any_of(accesses.begin(), accesses.end(), [&](const Access& load) {
      if (&load >= &store || load.site.is_store || load.phase != store.phase || !same_element(load.site, store.site))
        return false;
      const std::vector<const ForStmt*> common = common_loops(load.site, store.site);
      return std::all_of(again.begin(), again.end(), [&](const ForStmt* loop) {
        return std::find(common.begin(), common.end(), loop) != common.end();
      });
    });
  }

  static bool apart(const Access& a, const Access& b) {
    if (always_apart(a.site, b.site)) return true;
    const std::vector<const ForStmt*> common = common_loops(a.site, b.site);
    const std::vector<IndexAtom> equal = equal_where_they_meet(a.site, b.site, common);
    return std::all_of(common.begin(), common.end(),
                       [&](const ForStmt* loop) {
                         return !may_differ(*loop, a.site, b.site) || holds(equal, loop->variable);
                       }) &&
           apart_in_one_iteration(a.site, b.site);
  }

  [[noreturn]] static void fail(const Access& access, const std::string& sentence) {
    broken(access.site.stmt->at, "V11", sentence);
  }

  const Kernel& k_;
  const Names names_;
};

}  // namespace

void verify_stores(const Kernel& kernel) { Stores(kernel).run(); }

}  // namespace fusejit::ir
