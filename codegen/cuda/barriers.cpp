#include "codegen/cuda/barriers.h"

#include <algorithm>
#include <map>
#include <tuple>
#include <vector>

#include "ir/kernel/walk.h"

namespace fusejit::codegen::cuda {
namespace {

using ir::Block;
using ir::MemId;

// An access since the last barrier, and the innermost block loop around it (null: none). `own`: each iteration of that
// loop has one thread which does it. A load outside of some block loop is done by all threads of that axis.
struct Access {
  MemId memory;
  bool write;
  const ir::ForStmt* loop;
  bool own;
  friend bool operator<(const Access& a, const Access& b) {
    return std::tie(a.memory, a.write, a.loop, a.own) < std::tie(b.memory, b.write, b.loop, b.own);
  }
};
using State = std::map<Access, int>;  // and when the last such access was

void join(State& into, const State& other) {
  for (const auto& [access, time] : other) {
    int& known = into.emplace(access, time).first->second;
    known = std::max(known, time);
  }
}

class Pass {
 public:
  Pass(const ir::Kernel& kernel, const ir::Phase& phase, const Tails& tails) : kernel_(kernel), tails_(tails) {
    ir::for_each_stmt(phase.body, [&](const ir::Stmt& s) {
      if (const auto* store = std::get_if<ir::StoreStmt>(&s.node)) stored_.insert(store->place.memory);
      const auto* loop = std::get_if<ir::ForStmt>(&s.node);
      if (loop && ir::is_block_axis(loop->binding)) axes_[loop->binding] = loop->high[0].constant();
    });
    std::erase_if(axes_, [](const auto& axis) { return axis.second == 1; });
  }

  std::set<const ir::Stmt*> run(const ir::Phase& phase) && {
    State state;
    visit(phase.body, state);
    return std::move(marks_);
  }

 private:
  void visit(const Block& block, State& state) {
    for (const ir::Stmt& s : block.statements) {
      if (marks_.contains(&s)) state.clear();  // found to be needed in an earlier turn of a loop around it
      path_.emplace_back(&s, ++clock_);
      const auto tail = tails_.statements.find(&s);
      if (tail != tails_.statements.end() && tail->second == &s) begun_[&s] = clock_;
      const bool own = depth_ == static_cast<int>(axes_.size()) || tail != tails_.statements.end();
      if (const auto* load = std::get_if<ir::LoadStmt>(&s.node)) touch(load->place.memory, false, own, state);
      if (const auto* store = std::get_if<ir::StoreStmt>(&s.node)) touch(store->place.memory, true, true, state);
      if (const auto* local = std::get_if<ir::LocalStmt>(&s.node)) declare(local->memory, state);
      if (const auto* loop = std::get_if<ir::ForStmt>(&s.node)) visit(*loop, state);
      if (const auto* branch = std::get_if<ir::IfStmt>(&s.node)) {
        State other = state;
        visit(branch->then_block, state);
        visit(branch->else_block, other);
        join(state, other);
      }
      path_.pop_back();
    }
  }

  void visit(const ir::ForStmt& loop, State& state) {
    if (ir::is_grid_axis(loop.binding)) return visit(loop.body, state);
    if (ir::is_block_axis(loop.binding)) {
      const bool counts = loop.high[0].constant() > 1;
      const ir::ForStmt* const outer = loop_;
      if (counts) loop_ = &loop, ++depth_;
      visit(loop.body, state);
      if (counts) loop_ = outer, --depth_;
      if (!loop.results.empty() && meets_in_shared_memory(loop.high[0].constant(), stride_of(loop.binding)))
        state.clear();
      return;
    }
    // What an iteration leaves behind meets the next one; the loop may run no iteration at all.
    for (bool again = true; again;) {
      const std::size_t marks = marks_.size(), known = state.size();
      State body = state;
      visit(loop.body, body);
      join(state, body);
      again = marks_.size() != marks || state.size() != known;
    }
  }

  std::int64_t stride_of(ir::Binding binding) const {
    std::int64_t stride = 1;
    for (const auto& [axis, extent] : axes_) stride *= axis < binding ? extent : 1;
    return stride;
  }

  // Initial values are set by all threads together.
  void declare(MemId memory, State& state) {
    const ir::Memory& m = kernel_.memories[static_cast<std::size_t>(memory)];
    if (m.kind == ir::MemKind::scratch_local && m.has_init) touch(memory, true, false, state);
  }

  void touch(MemId memory, bool write, bool own, State& state) {
    const ir::Memory& m = kernel_.memories[static_cast<std::size_t>(memory)];
    if (m.kind == ir::MemKind::register_local || axes_.empty()) return;
    if (!stored_.contains(memory) && !m.has_init) return;
    int last = -1;
    for (const auto& [a, time] : state) {
      if (a.memory != memory || !(a.write || write)) continue;
      // In one block loop, also in its next run, an element is one iteration's (V1, V2).
      const bool one_thread = a.own && own && a.loop == loop_;
      if (!one_thread) last = std::max(last, time);
    }
    if (last >= 0) {
      // Before the outermost statement that began after that access: the least often, and where all threads come.
      const auto at = std::find_if(path_.begin(), path_.end(), [&](const auto& entry) { return entry.second > last; });
      const auto tail = tails_.statements.find(at->first);  // where not all threads come
      marks_.insert(tail == tails_.statements.end() ? at->first : tail->second);
      const int time = tail == tails_.statements.end() ? at->second : begun_.at(tail->second);
      std::erase_if(state, [&](const auto& entry) { return entry.second < time; });
    }
    join(state, {{{memory, write, loop_, own}, clock_}});
  }

  const ir::Kernel& kernel_;
  const Tails& tails_;
  std::map<ir::Binding, std::int64_t> axes_;  // of more than one thread
  int depth_ = 0;                             // block loops around
  const ir::ForStmt* loop_ = nullptr;         // the innermost of them
  int clock_ = 0;
  std::vector<std::pair<const ir::Stmt*, int>> path_;  // enclosing statements, and when they began
  std::map<const ir::Stmt*, int> begun_;               // when tails began
  std::set<MemId> stored_;
  std::set<const ir::Stmt*> marks_;
};

}  // namespace

std::set<const ir::Stmt*> barriers(const ir::Kernel& kernel, const ir::Phase& phase, const Tails& tails) {
  return Pass(kernel, phase, tails).run(phase);
}

}  // namespace fusejit::codegen::cuda
