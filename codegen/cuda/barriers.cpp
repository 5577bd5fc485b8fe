#include "codegen/cuda/barriers.h"

#include <algorithm>
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
using State = std::set<Access>;

class Pass {
 public:
  Pass(const ir::Kernel& kernel, const ir::Phase& phase) : kernel_(kernel) {
    std::set<ir::Binding> axes;
    ir::for_each_stmt(phase.body, [&](const ir::Stmt& s) {
      const auto* loop = std::get_if<ir::ForStmt>(&s.node);
      if (loop && ir::is_block_axis(loop->binding) && loop->high[0].constant() > 1) axes.insert(loop->binding);
      if (const auto* store = std::get_if<ir::StoreStmt>(&s.node)) stored_.insert(store->place.memory);
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
      if (const auto* load = std::get_if<ir::LoadStmt>(&s.node)) touch(s, load->place.memory, false, depth_, state);
      if (const auto* store = std::get_if<ir::StoreStmt>(&s.node)) touch(s, store->place.memory, true, depth_, state);
      if (const auto* local = std::get_if<ir::LocalStmt>(&s.node)) declare(s, local->memory, state);
      if (const auto* loop = std::get_if<ir::ForStmt>(&s.node)) visit(*loop, state);
      if (const auto* branch = std::get_if<ir::IfStmt>(&s.node)) {
        State other = state;
        visit(branch->then_block, state);
        visit(branch->else_block, other);
        state.insert(other.begin(), other.end());
      }
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
      for (Access a : state) {
        a.ended = a.ended || (counts && a.depth > depth_);
        after.insert(a);
      }
      state = std::move(after);
      return;
    }
    // What an iteration leaves behind meets the next one; the loop may run no iteration at all.
    for (std::size_t marked = marks_.size() + 1; marked != marks_.size();) {
      marked = marks_.size();
      State body = state;
      visit(loop.body, body);
      const std::size_t before = state.size();
      state.insert(body.begin(), body.end());
      if (state.size() != before) marked = marks_.size() + 1;
    }
  }

  // An initial value is set by all threads together, and a barrier follows.
  void declare(const ir::Stmt& s, MemId memory, State& state) {
    const ir::Memory& m = kernel_.memories[static_cast<std::size_t>(memory)];
    if (m.kind != ir::MemKind::scratch_local || !m.has_init) return;
    touch(s, memory, true, -1, state);
    state.clear();
  }

  void touch(const ir::Stmt& s, MemId memory, bool write, int depth, State& state) {
    const ir::Memory& m = kernel_.memories[static_cast<std::size_t>(memory)];
    if (m.kind == ir::MemKind::register_local || axes_ == 0) return;
    if (!stored_.contains(memory) && !m.has_init) return;
    const bool own = depth == axes_;  // every thread for itself
    const bool conflict = std::any_of(state.begin(), state.end(), [&](const Access& a) {
      if (a.memory != memory || !(a.write || write)) return false;
      const bool same_writer = a.write && write;
      return a.ended || a.depth != depth || !(own || same_writer);
    });
    if (conflict) {
      marks_.insert(&s);
      state.clear();
    }
    state.insert({memory, write, depth, false});
  }

  const ir::Kernel& kernel_;
  int axes_ = 0;
  int depth_ = 0;
  std::set<MemId> stored_;
  std::set<const ir::Stmt*> marks_;
};

}  // namespace

std::set<const ir::Stmt*> barriers(const ir::Kernel& kernel, const ir::Phase& phase) {
  return Pass(kernel, phase).run(phase);
}

}  // namespace fusejit::codegen::cuda
