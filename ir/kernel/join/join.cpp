#include "ir/kernel/join/join.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "ir/base/at.h"
#include "ir/kernel/join/inner.h"
#include "ir/kernel/join/loops.h"
#include "ir/kernel/join/rename.h"
#include "ir/kernel/verify/verify.h"
#include "ir/kernel/walk.h"
#include "ir/strict.h"

namespace fusejit::ir {
namespace {

class Join {
 public:
  Join(const Kernel& first, const Kernel& second, const Joint& joint) : first_(first), second_(second), joint_(joint) {}

  std::optional<Joined> run() {
    if (!can_be_joined(first_) || !can_be_joined(second_) || first_.isa != second_.isa) return std::nullopt;
    out_.kernel = first_;
    if (!declare_together(out_.kernel, first_, second_, joint_) || !append_second()) return std::nullopt;
    out_.kernel = simplify(out_.kernel);  // elements that are the same have the same index now
    Block& body = innermost();
    if (!rounds_are_apart()) return std::nullopt;
    for (std::size_t b = 0; b < first_.params.size(); ++b) {
      const MemId buffer = out_.kernel.params[b].memory;
      if (memory(buffer).kind == MemKind::write) forward_store(body, buffer);
    }
    out_.kernel = simplify(out_.kernel);
    store_in_caches();
    keep_inner_on_chip();
    if (!holds(verify)) return std::nullopt;
    check_text(out_.kernel, parse_kernel);
    return std::move(out_);
  }

 private:
  static bool can_be_joined(const Kernel& kernel) {
    return kernel.phases.size() == 1 && kernel.works.empty() &&
           std::all_of(kernel.params.begin(), kernel.params.end(), [](const KernelParam& p) { return p.memory >= 0; });
  }
  Memory& memory(MemId id) { return out_.kernel.memories[at(id)]; }

  // The second's statements behind the first's, in the innermost of the loops that both begin with.
  bool append_second() {
    Phase& phase = out_.kernel.phases[0];
    phase.registers = std::max(phase.registers, second_.phases[0].registers);
    const std::vector<Pair> common = aligned_loops();
    if (common.empty()) return false;
    Block &mine = common.back().first->body, &its = common.back().second->body;
    if (shares_out(mine) || shares_out(its) || !blocks_agree(mine, its)) return false;
    Renaming renaming(first_, second_, joint_, out_.kernel);
    for (const auto& [a, b] : common) {
      renaming.is(b->variable, a->variable);
      out_.rounds *= a->high[0].constant() - a->low[0].constant();
    }
    depth_ = common.size();
    renaming.block(its);
    std::move(its.statements.begin(), its.statements.end(), std::back_inserter(mine.statements));
    sign(out_, first_, second_, joint_, renaming);
    return true;
  }
  std::vector<ForStmt*> common_loops() {
    std::vector<ForStmt*> loops;
    for (Block* body = &out_.kernel.phases[0].body; loops.size() < depth_; body = &loops.back()->body)
      loops.push_back(&std::get<ForStmt>(body->statements[0].node));
    return loops;
  }
  Block& innermost() { return common_loops().back()->body; }

  // The loops that both begin with, a pair each.
  using Pair = std::pair<ForStmt*, ForStmt*>;
  std::vector<Pair> aligned_loops() {
    std::vector<Pair> common;
    Block* mine = &out_.kernel.phases[0].body;
    Block* its = &second_.phases[0].body;
    while (mine->statements.size() == 1 && its->statements.size() == 1) {
      auto* a = std::get_if<ForStmt>(&mine->statements[0].node);
      auto* b = std::get_if<ForStmt>(&its->statements[0].node);
      if (a == nullptr || b == nullptr) break;
      if (a->binding == b->binding) split_alike(*a, *b, out_.kernel.variable_count, second_.variable_count);
      if (!is_same(*a, *b)) break;
      common.emplace_back(a, b);
      mine = &a->body, its = &b->body;
    }
    return common;
  }
  static bool is_same(const ForStmt& a, const ForStmt& b) {
    const auto constant = [](const std::vector<Index>& bound) { return bound.size() == 1 && bound[0].is_constant(); };
    return a.results.empty() && b.results.empty() && a.binding == b.binding && a.copies == b.copies &&
           (a.binding == Binding::none || is_shared_out(a.binding)) && constant(a.low) && constant(a.high) &&
           a.low == b.low && a.high == b.high;
  }

  static bool shares_out(const Block& block) {
    bool found = false;
    for_each_stmt(block, [&](const Stmt& stmt) {
      if (const auto* loop = std::get_if<ForStmt>(&stmt.node)) found = found || is_shared_out(loop->binding);
    });
    return found;
  }
  // An axis of a block has one extent.
  static bool blocks_agree(const Block& a, const Block& b) {
    std::map<Binding, Index> extents;
    bool agree = true;
    for (const Block* block : {&a, &b}) {
      for_each_stmt(*block, [&](const Stmt& stmt) {
        const auto* loop = std::get_if<ForStmt>(&stmt.node);
        if (loop == nullptr || !is_block_axis(loop->binding)) return;
        agree = agree && extents.try_emplace(loop->binding, loop->high[0]).first->second == loop->high[0];
      });
    }
    return agree;
  }

  // The rounds may come in any order, and so in that of the joined kernel, where they could be tasks: V1 and V2.
  bool rounds_are_apart() {
    std::vector<ForStmt*> serial;
    for (ForStmt* loop : common_loops())
      if (loop->binding == Binding::none) serial.push_back(loop);
    for (ForStmt* loop : serial) loop->binding = Binding::threads;
    const bool apart = holds(verify_writes);
    for (ForStmt* loop : serial) loop->binding = Binding::none;
    return apart;
  }
  bool holds(void (*rule)(const Kernel&)) const {
    try {
      rule(out_.kernel);
      return true;
    } catch (const InternalError&) {
      return false;
    }
  }

  std::set<MemId> loaded_buffers() {
    std::set<MemId> loaded;
    for_each_stmt(innermost(), [&](const Stmt& stmt) {
      if (const auto* load = std::get_if<LoadStmt>(&stmt.node)) loaded.insert(load->place.memory);
    });
    return loaded;
  }

  // What is loaded again is not stored around the caches.
  void store_in_caches() {
    const std::set<MemId> loaded = loaded_buffers();
    for_each_stmt(innermost(), [&](Stmt& stmt) {
      auto* store = std::get_if<StoreStmt>(&stmt.node);
      if (store != nullptr && loaded.contains(store->place.memory)) store->non_temporal = false;
    });
  }

  // Of inner buffers a round keeps its own part, if anything loads it still.
  void keep_inner_on_chip() {
    const std::set<MemId> loaded = loaded_buffers();
    std::set<MemId> inner;
    for (std::size_t b = 0; b < first_.params.size(); ++b)
      if (joint_.inner[b]) inner.insert(out_.kernel.params[b].memory);
    std::vector<VarId> common;
    VariableRanges ranges;
    for (const ForStmt* loop : common_loops()) common.push_back(loop->variable), ranges.enter(*loop);
    for (auto buffer = inner.begin(); buffer != inner.end();) {
      if (!loaded.contains(*buffer)) {
        remove_accesses(innermost(), *buffer++);
      } else if (make_local(out_.kernel, innermost(), ranges, common, *buffer)) {
        ++buffer;
      } else {
        buffer = inner.erase(buffer);
      }
    }
    if (inner.empty()) return;
    std::vector<int> now(out_.kernel.params.size(), -1);
    std::vector<KernelParam> params;
    for (std::size_t b = 0; b < now.size(); ++b) {
      if (inner.contains(out_.kernel.params[b].memory)) continue;
      now[b] = static_cast<int>(params.size());
      params.push_back(out_.kernel.params[b]);
    }
    out_.kernel.params = std::move(params);
    for (std::vector<int>* places : {&out_.first, &out_.second})
      for (int& place : *places) place = now[at(place)];
    out_.kernel = simplify(out_.kernel);
  }

  const Kernel& first_;
  Kernel second_;
  const Joint& joint_;
  Joined out_;
  std::size_t depth_ = 0;  // of the loops that both begin with
};

}  // namespace

std::optional<Joined> join(const Kernel& first, const Kernel& second, const Joint& joint) {
  return Join(first, second, joint).run();
}

}  // namespace fusejit::ir
