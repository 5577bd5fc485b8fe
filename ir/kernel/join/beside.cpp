#include "ir/kernel/join/beside.h"

#include <algorithm>
#include <iterator>
#include <set>
#include <utility>

#include "ir/base/at.h"
#include "ir/kernel/join/inner.h"
#include "ir/kernel/join/loops.h"
#include "ir/kernel/join/rename.h"
#include "ir/kernel/walk.h"
#include "ir/strict.h"

namespace fusejit::ir {
namespace {

class Beside {
 public:
  Beside(const Kernel& first, const Kernel& second, const Joint& joint)
      : first_(first), second_(second), joint_(joint) {}

  std::optional<Joined> run() {
    if (first_.isa != second_.isa || !have_buffers_alone() || !are_independent()) return std::nullopt;
    out_.kernel = first_;
    if (!declare_together(out_.kernel, first_, second_, joint_)) return std::nullopt;
    find_shared();
    leave_fetches_to_first();
    pair_loops();
    if (!has_tasks()) return std::nullopt;
    merge();
    out_.kernel = simplify(out_.kernel);
    try {
      verify(out_.kernel);
    } catch (const InternalError&) {
      return std::nullopt;
    }
    check_text(out_.kernel, parse_kernel);
    return std::move(out_);
  }

 private:
  bool have_buffers_alone() const {
    const auto all = [](const Kernel& kernel) {
      return std::all_of(kernel.params.begin(), kernel.params.end(),
                         [](const KernelParam& p) { return p.memory >= 0; });
    };
    return all(first_) && all(second_);
  }
  bool are_independent() const {
    for (std::size_t b = 0; b < joint_.same.size(); ++b) {
      if (joint_.same[b] < 0) continue;
      const Memory &mine = first_.memories[at(first_.params[at(joint_.same[b])].memory)],
                   &its = second_.memories[at(second_.params[b].memory)];
      if (mine.kind != MemKind::read || its.kind != MemKind::read) return false;
    }
    return true;
  }
  void find_shared() {
    for (std::size_t b = 0; b < joint_.same.size(); ++b) {
      if (joint_.same[b] < 0) continue;
      shared_of_second_.insert(second_.params[b].memory);
      shared_of_first_.insert(first_.params[at(joint_.same[b])].memory);
    }
  }
  void leave_fetches_to_first() {
    std::set<MemId> by_first, fetched;  // the first's buffers, and the second's
    for_each_stmt(first_.phases[0].body, [&](const Stmt& stmt) {
      if (const auto* fetch = std::get_if<PrefetchStmt>(&stmt.node)) by_first.insert(fetch->place.memory);
    });
    for (std::size_t b = 0; b < joint_.same.size(); ++b) {
      if (joint_.same[b] >= 0 && by_first.contains(first_.params[at(joint_.same[b])].memory))
        fetched.insert(second_.params[b].memory);
    }
    erase_statements(second_.phases[0].body, [&](const Stmt& stmt) {
      const auto* fetch = std::get_if<PrefetchStmt>(&stmt.node);
      return fetch != nullptr && fetched.contains(fetch->place.memory);
    });
  }

  static ForStmt* only_loop(Block& block) {
    return block.statements.size() == 1 ? std::get_if<ForStmt>(&block.statements[0].node) : nullptr;
  }
  // The serial loop of a block in which what both read is loaded: there is one.
  static ForStmt* loop_over(Block& block, const std::set<MemId>& shared) {
    ForStmt* found = nullptr;
    for (Stmt& stmt : block.statements) {
      auto* loop = std::get_if<ForStmt>(&stmt.node);
      if (loop == nullptr) continue;
      bool loads = false;
      for_each_stmt(loop->body, [&](const Stmt& inner) {
        const auto* load = std::get_if<LoadStmt>(&inner.node);
        loads = loads || (load != nullptr && shared.contains(load->place.memory));
      });
      if (!loads) continue;
      if (found != nullptr) return nullptr;
      found = loop;
    }
    return found;
  }

  // The loops of both, from outside in, that go over the same.
  struct Pair {
    Block *mine, *its;  // that the loops stand in
    ForStmt *a, *b;
  };
  void pair_loops() {
    Block *mine = &out_.kernel.phases[0].body, *its = &second_.phases[0].body;
    for (bool alone = true;;) {
      ForStmt *a = only_loop(*mine), *b = only_loop(*its);
      if (alone && a == nullptr && b != nullptr) a = loop_over(*mine, shared_of_first_), alone = false;
      if (alone && b == nullptr && a != nullptr) b = loop_over(*its, shared_of_second_), alone = false;
      if (a == nullptr || b == nullptr || rounds_of(*a) <= 1 || rounds_of(*b) <= 1) return;
      if (!is_shared_out(a->binding) && !is_shared_out(b->binding)) return;  // each has its own order in there
      const bool split = rounds_of(*a) != rounds_of(*b);
      split_alike(*a, *b, out_.kernel.variable_count, second_.variable_count);
      if (rounds_of(*a) != rounds_of(*b)) return;
      pairs_.push_back({mine, its, a, b});
      if (split && !alone) return;  // what one does several times while the other does it once
      mine = &a->body, its = &b->body;
    }
  }
  bool has_tasks() const {
    return !pairs_.empty() && is_shared_out(pairs_[0].a->binding) && pairs_[0].a->binding == pairs_[0].b->binding;
  }

  // From inside out: the second's loop is taken apart, and what stood beside it comes to stand beside the first's.
  void merge() {
    Renaming renaming(first_, second_, joint_, out_.kernel);
    bool shared_out = true;
    for (const Pair& pair : pairs_) {
      renaming.is(pair.b->variable, pair.a->variable);
      out_.rounds *= rounds_of(*pair.a);
      shared_out = shared_out && is_shared_out(pair.a->binding) && pair.a->binding == pair.b->binding;
      if (!shared_out) pair.a->binding = Binding::none;
    }
    run_serially(pairs_.back().a->body), run_serially(pairs_.back().b->body);
    for (Phase& phase : second_.phases) renaming.block(phase.body);
    append(pairs_.back().a->body.statements, pairs_.back().b->body.statements);
    std::for_each(pairs_.rbegin(), pairs_.rend(), put_around);
    for (std::size_t p = 1; p < second_.phases.size(); ++p) out_.kernel.phases.push_back(std::move(second_.phases[p]));
    out_.kernel.phases[0].registers = std::max(first_.phases[0].registers, second_.phases[0].registers);
    for (const MemId work : second_.works) out_.kernel.works.push_back(renaming.memory(work));
    sign(out_, first_, second_, joint_, renaming);
  }
  static void append(std::vector<Stmt>& to, std::vector<Stmt>& from) {
    std::move(from.begin(), from.end(), std::back_inserter(to));
  }
  static void put_around(const Pair& pair) {
    std::vector<Stmt>&mine = pair.mine->statements, &its = pair.its->statements;
    const auto loop = std::find_if(its.begin(), its.end(),
                                   [&](const Stmt& stmt) { return std::get_if<ForStmt>(&stmt.node) == pair.b; });
    std::vector<Stmt> all(std::make_move_iterator(its.begin()), std::make_move_iterator(loop));
    append(all, mine);
    std::move(loop + 1, its.end(), std::back_inserter(all));
    mine = std::move(all);
  }
  static void run_serially(Block& block) {
    for_each_stmt(block, [](Stmt& stmt) {
      auto* loop = std::get_if<ForStmt>(&stmt.node);
      if (loop != nullptr && is_shared_out(loop->binding)) loop->binding = Binding::none;
    });
  }

  const Kernel& first_;
  Kernel second_;
  const Joint& joint_;
  Joined out_;
  std::set<MemId> shared_of_first_, shared_of_second_;
  std::vector<Pair> pairs_;
};

}  // namespace

std::optional<Joined> beside(const Kernel& first, const Kernel& second, const Joint& joint) {
  return Beside(first, second, joint).run();
}

}  // namespace fusejit::ir
