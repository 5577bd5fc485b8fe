// Dead values, locals, loops and ifs.
#include <algorithm>

#include "ir/kernel/simplify/simplify.h"
#include "ir/kernel/walk.h"

namespace fusejit::ir {
namespace {

// One walk from the end to the start: every use is seen before its definition, because only locals go around loops.
class Sweep {
 public:
  Sweep(Kernel& kernel, const std::vector<bool>& dead_memory)
      : k_(kernel), dead_memory_(dead_memory), used_(kernel.values.size()) {}

  bool run() {
    for (auto phase = k_.phases.rbegin(); phase != k_.phases.rend(); ++phase) block(phase->body);
    return changed_;
  }

 private:
  bool is_used(ValueId id) const { return used_[static_cast<std::size_t>(id)]; }
  void use(const Arg& a) {
    if (!a.is_literal()) used_[static_cast<std::size_t>(a.value)] = true;
  }
  void use(const Index& index) {
    index.for_each_leaf([&](const IndexAtom& leaf) {
      if (leaf.kind == AtomKind::value) used_[static_cast<std::size_t>(leaf.id)] = true;
    });
  }

  void block(Block& b) {
    for (const Arg& a : b.yields) use(a);
    std::vector<Stmt> kept;
    for (auto stmt = b.statements.rbegin(); stmt != b.statements.rend(); ++stmt) {
      if (lives(*stmt)) {
        kept.push_back(std::move(*stmt));
      } else {
        changed_ = true;
      }
    }
    std::reverse(kept.begin(), kept.end());
    b.statements = std::move(kept);
  }

  bool lives(Stmt& stmt) {
    if (auto* loop = std::get_if<ForStmt>(&stmt.node)) {
      forget_results(loop->results, {&loop->body});
      if (loop->results.empty()) loop->combiners.clear();
      block(loop->body);
      if (loop->results.empty() && loop->body.statements.empty()) return false;
    } else if (auto* choice = std::get_if<IfStmt>(&stmt.node)) {
      forget_results(choice->results, {&choice->then_block, &choice->else_block});
      block(choice->then_block);
      block(choice->else_block);
      if (choice->results.empty() && choice->then_block.statements.empty() && choice->else_block.statements.empty())
        return false;
      if (choice->condition >= 0) used_[static_cast<std::size_t>(choice->condition)] = true;
    } else if (const auto* store = std::get_if<StoreStmt>(&stmt.node)) {
      if (dead_memory_[static_cast<std::size_t>(store->place.memory)]) return false;
    } else if (const auto* local = std::get_if<LocalStmt>(&stmt.node)) {
      return !dead_memory_[static_cast<std::size_t>(local->memory)];
    } else if (!std::holds_alternative<PrefetchStmt>(stmt.node)) {
      const std::vector<ValueId> ids = results(stmt);
      if (std::none_of(ids.begin(), ids.end(), [&](ValueId id) { return is_used(id); })) return false;
    }
    for_each_index(stmt, [&](const Index& index) { use(index); });
    for_each_arg(stmt, [&](const Arg& a) { use(a); });
    return true;
  }
  // Results that nobody uses are not yielded; only all of them together.
  void forget_results(std::vector<ValueId>& ids, std::initializer_list<Block*> blocks) {
    if (ids.empty() || std::any_of(ids.begin(), ids.end(), [&](ValueId id) { return is_used(id); })) return;
    ids.clear();
    for (Block* b : blocks) b->yields.clear();
    changed_ = true;
  }

  Kernel& k_;
  const std::vector<bool>& dead_memory_;
  std::vector<bool> used_;
  bool changed_ = false;
};

// Locals and works that nothing loads: their stores have no effect.
std::vector<bool> dead_memories(const Kernel& kernel) {
  std::vector<bool> dead;
  for (const Memory& m : kernel.memories) dead.push_back(m.is_local() || m.kind == MemKind::work);
  for (const Phase& phase : kernel.phases)
    for_each_stmt(phase.body, [&](const Stmt& stmt) {
      if (const auto* load = std::get_if<LoadStmt>(&stmt.node))
        dead[static_cast<std::size_t>(load->place.memory)] = false;
      if (const auto* p = std::get_if<PrefetchStmt>(&stmt.node))
        dead[static_cast<std::size_t>(p->place.memory)] = false;
    });
  return dead;
}

}  // namespace

void drop_dead(Kernel& kernel) {
  for (bool changed = true; changed;) {
    const std::vector<bool> dead = dead_memories(kernel);
    changed = Sweep(kernel, dead).run();
    std::erase_if(kernel.works, [&](MemId id) { return dead[static_cast<std::size_t>(id)]; });
  }
  if (kernel.phases.size() > 1)
    std::erase_if(kernel.phases, [](const Phase& phase) { return phase.body.statements.empty(); });
  if (kernel.phases.empty()) kernel.phases.emplace_back();
}

}  // namespace fusejit::ir
