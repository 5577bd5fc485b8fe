#include "ir/kernel/join/phases.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "ir/kernel/join/loops.h"
#include "ir/kernel/walk.h"

namespace fusejit::ir {
namespace {

// The loops that share out a phase, from outside in.
std::vector<ForStmt*> tasks_of(Phase& phase) {
  std::vector<ForStmt*> loops;
  for (Block* body = &phase.body; body->statements.size() == 1; body = &loops.back()->body) {
    auto* loop = std::get_if<ForStmt>(&body->statements[0].node);
    if (loop == nullptr || !is_shared_out(loop->binding) || rounds_of(*loop) == 0) break;
    loops.push_back(loop);
  }
  return loops;
}

struct Touched {
  std::set<MemId> loaded, stored;
};
Touched touched_by(const Phase& phase) {
  Touched touched;
  for_each_stmt(phase.body, [&](const Stmt& stmt) {
    if (const auto* load = std::get_if<LoadStmt>(&stmt.node)) touched.loaded.insert(load->place.memory);
    if (const auto* store = std::get_if<StoreStmt>(&stmt.node)) touched.stored.insert(store->place.memory);
  });
  return touched;
}
bool meet(const std::set<MemId>& a, const std::set<MemId>& b) {
  return std::any_of(a.begin(), a.end(), [&](MemId memory) { return b.contains(memory); });
}

// `second` task by task behind `first`; false where they are shared out otherwise.
bool append(Phase& first, Phase& second) {
  const std::vector<ForStmt*> mine = tasks_of(first), its = tasks_of(second);
  const auto alike = [](const ForStmt* a, const ForStmt* b) {
    return a->binding == b->binding && rounds_of(*a) == rounds_of(*b);
  };
  if (mine.empty() || !std::equal(mine.begin(), mine.end(), its.begin(), its.end(), alike)) return false;
  std::map<VarId, VarId> variables;
  for (std::size_t i = 0; i < mine.size(); ++i) variables[its[i]->variable] = mine[i]->variable;
  Block &to = mine.back()->body, &from = its.back()->body;
  for_each_stmt(from, [&](Stmt& stmt) {
    for_each_index(stmt, [&](Index& index) {
      index = index.substitute([&](const IndexAtom& leaf) -> std::optional<Index> {
        const auto found = leaf.kind == AtomKind::variable ? variables.find(leaf.id) : variables.end();
        return found == variables.end() ? std::nullopt : std::optional(Index::variable(found->second));
      });
    });
  });
  std::move(from.statements.begin(), from.statements.end(), std::back_inserter(to.statements));
  first.registers = std::max(first.registers, second.registers);
  return true;
}

}  // namespace

Kernel join_phases(const Kernel& kernel) {
  Kernel joined = kernel;
  while (joined.phases.size() > 1) {
    const Touched first = touched_by(joined.phases[0]), second = touched_by(joined.phases[1]);
    if (meet(first.stored, second.loaded) || meet(first.loaded, second.stored)) break;
    if (!append(joined.phases[0], joined.phases[1])) break;
    joined.phases.erase(joined.phases.begin() + 1);
  }
  return joined;
}

}  // namespace fusejit::ir
