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

// An access since the last barrier. `depth` counts the block loops around it; `ended`: one of them is over.
struct Access {
  MemId memory;
  bool write;
  int depth;
  bool ended;
  friend bool operator<(const Access& a, const Access& b) {
    return std::tie(a.memory, a.write, a.depth, a.ended) < std::tie(b.memory, b.write, b.depth, b.ended);
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
  Pass(const ir::Kernel& kernel, const ir::Phase& phase) : kernel_(kernel) {
    std::set<ir::Binding> axes;
    ir::for_each_stmt(phase.body, [&](const ir::Stmt& s) {
      if (const auto* store = std::get_if<ir::StoreStmt>(&s.node)) stored_.insert(store->place.memory);
      const auto* loop = std::get_if<ir::ForStmt>(&s.node);
      if (loop && ir::is_block_axis(loop->binding) && loop->high[0].constant() > 1) axes.insert(loop->binding);
    });
    axes_ = static_cast<int>(axes.size());
  }

  std::set<const ir::Stmt*> run(const ir::Phase& phase) && {
    State state;
    visit(phase.body, state);
    return std::move(marks_);
  }

 private:
  void visit(const Block& block, State& state) {
    for (const ir::Stmt& s : block.statements) {
      path_.emplace_back(&s, ++clock_);
      if (const auto* load = std::get_if<ir::LoadStmt>(&s.node)) touch(load->place.memory, false, depth_, state);
      if (const auto* store = std::get_if<ir::StoreStmt>(&s.node)) touch(store->place.memory, true, depth_, state);
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
      depth_ += counts ? 1 : 0;
      visit(loop.body, state);
      depth_ -= counts ? 1 : 0;
      State after;
      for (const auto& [access, time] : state) {
        Access a = access;
        a.ended = a.ended || (counts && a.depth > depth_);
        join(after, {{a, time}});
      }
      state = std::move(after);
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

  // An initial value is set by all threads together, and a barrier follows.
  void declare(MemId memory, State& state) {
    const ir::Memory& m = kernel_.memories[static_cast<std::size_t>(memory)];
    if (m.kind != ir::MemKind::scratch_local || !m.has_init) return;
    touch(memory, true, -1, state);
    state.clear();
  }

  void touch(MemId memory, bool write, int depth, State& state) {
    const ir::Memory& m = kernel_.memories[static_cast<std::size_t>(memory)];
    if (m.kind == ir::MemKind::register_local || axes_ == 0) return;
    if (!stored_.contains(memory) && !m.has_init) return;
    const bool own = depth == axes_;  // every thread for itself
    int last = -1;
    for (const auto& [a, time] : state) {
      if (a.memory != memory || !(a.write || write)) continue;
      const bool same_writer = a.write && write;
      if (a.ended || a.depth != depth || !(own || same_writer)) last = std::max(last, time);
    }
    if (last >= 0) {
      // Before the outermost statement that began after that access: the least often, and where all threads come.
      const auto at = std::find_if(path_.begin(), path_.end(), [&](const auto& entry) { return entry.second > last; });
      marks_.insert(at->first);
      std::erase_if(state, [&](const auto& entry) { return entry.second < at->second; });
    }
    join(state, {{{memory, write, depth, false}, clock_}});
  }

  const ir::Kernel& kernel_;
  int axes_ = 0;
  int depth_ = 0;
  int clock_ = 0;
  std::vector<std::pair<const ir::Stmt*, int>> path_;  // enclosing statements, and when they began
  std::set<MemId> stored_;
  std::set<const ir::Stmt*> marks_;
};

}  // namespace

std::set<const ir::Stmt*> barriers(const ir::Kernel& kernel, const ir::Phase& phase) {
  return Pass(kernel, phase).run(phase);
}

}  // namespace fusejit::codegen::cuda
