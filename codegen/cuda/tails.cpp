#include "codegen/cuda/tails.h"

#include <algorithm>

#include "ir/kernel/walk.h"

namespace fusejit::codegen::cuda {
namespace {

using ir::Block;
using ir::MemKind;
using ir::Stmt;

constexpr std::size_t kFewest = 2;  // a store alone has its own condition

class Search {
 public:
  Search(const ir::Kernel& kernel, const ir::Phase& phase) : kernel_(kernel) {
    std::map<ir::Binding, std::int64_t> extents;
    ir::for_each_stmt(phase.body, [&](const Stmt& s) {
      const auto* loop = std::get_if<ir::ForStmt>(&s.node);
      if (loop && ir::is_block_axis(loop->binding)) extents[loop->binding] = loop->high[0].constant();
    });
    for (const auto& [axis, extent] : extents) uncovered_ *= extent;
  }

  Tails run(const ir::Phase& phase) && {
    look(phase.body);
    return std::move(tails_);
  }

 private:
  MemKind kind(ir::MemId id) const { return kernel_.memories[static_cast<std::size_t>(id)].kind; }

  void look(const Block& block) {
    if (uncovered_ == 1) return;
    const std::size_t begin = first_of_tail(block);
    if (block.statements.size() - begin >= kFewest) {
      tails_.begin[&block] = begin;
      const Stmt* const head = &block.statements[begin];
      for (std::size_t i = begin; i < block.statements.size(); ++i)
        each(block.statements[i], [&](const Stmt& s) { tails_.statements[&s] = head; });
    }
    for (std::size_t i = 0; i < begin; ++i) {
      if (const auto* branch = std::get_if<ir::IfStmt>(&block.statements[i].node)) {
        look(branch->then_block);
        look(branch->else_block);
      }
      const auto* loop = std::get_if<ir::ForStmt>(&block.statements[i].node);
      if (!loop || loop->binding == ir::Binding::vector) continue;
      const std::int64_t threads = ir::is_block_axis(loop->binding) ? loop->high[0].constant() : 1;
      uncovered_ /= threads;
      look(loop->body);
      uncovered_ *= threads;
    }
  }

  template <class F>
  static void each(const Stmt& s, const F& visit) {
    visit(s);
    if (const auto* loop = std::get_if<ir::ForStmt>(&s.node)) ir::for_each_stmt(loop->body, visit);
    if (const auto* branch = std::get_if<ir::IfStmt>(&s.node)) {
      ir::for_each_stmt(branch->then_block, visit);
      ir::for_each_stmt(branch->else_block, visit);
    }
  }

  // Needs no other threads.
  bool alone(const Stmt& s) const {
    bool good = true;
    each(s, [&](const Stmt& inner) {
      const auto* loop = std::get_if<ir::ForStmt>(&inner.node);
      const auto* local = std::get_if<ir::LocalStmt>(&inner.node);
      good = good && !(loop && (ir::is_block_axis(loop->binding) || ir::is_grid_axis(loop->binding))) &&
             !(local && kind(local->memory) != MemKind::register_local);
    });
    return good;
  }

  // The longest end of the block that leaves nothing behind but stores to memory; its size if there are none.
  std::size_t first_of_tail(const Block& block) const {
    const std::vector<Stmt>& list = block.statements;
    std::size_t begin = list.size();
    if (!block.yields.empty()) return begin;
    while (begin > 0 && alone(list[begin - 1])) --begin;
    std::set<ir::MemId> declared;
    bool stores = false;
    // What is kept in registers of an outer block is for later.
    for (std::size_t i = begin; i < list.size(); ++i) {
      each(list[i], [&](const Stmt& s) {
        if (const auto* local = std::get_if<ir::LocalStmt>(&s.node)) declared.insert(local->memory);
        const auto* store = std::get_if<ir::StoreStmt>(&s.node);
        if (!store) return;
        if (kind(store->place.memory) != MemKind::register_local) {
          stores = true;
        } else if (!declared.contains(store->place.memory)) {
          begin = i + 1, stores = false;
        }
      });
    }
    return stores ? begin : list.size();
  }

  const ir::Kernel& kernel_;
  std::int64_t uncovered_ = 1;  // threads of the axes whose loops are not around
  Tails tails_;
};

}  // namespace

Tails lone_tails(const ir::Kernel& kernel, const ir::Phase& phase) { return Search(kernel, phase).run(phase); }

}  // namespace fusejit::codegen::cuda
