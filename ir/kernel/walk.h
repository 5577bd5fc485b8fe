// Walking the statement tree of a Kernel. Nesting is bounded by kMaxNesting, so these functions recurse.
#pragma once

#include "ir/base/check.h"
#include "ir/kernel/kernel.h"

namespace fusejit::ir {

// The parser and the builder refuse deeper blocks, so that everything after them may recurse over blocks.
inline constexpr int kMaxNesting = 200;

template <class... Fs>
struct Overloaded : Fs... {
  using Fs::operator()...;
};
template <class... Fs>
Overloaded(Fs...) -> Overloaded<Fs...>;

// Every statement in the order of the text, a `for` or `if` before what it holds. `B` is Block or const Block.
template <class B, class F>
void for_each_stmt(B& block, const F& visit) {
  for (auto& stmt : block.statements) {
    visit(stmt);
    if (auto* loop = std::get_if<ForStmt>(&stmt.node)) {
      for_each_stmt(loop->body, visit);
    } else if (auto* choice = std::get_if<IfStmt>(&stmt.node)) {
      for_each_stmt(choice->then_block, visit);
      for_each_stmt(choice->else_block, visit);
    }
  }
}

// Every index expression of the statement itself (bounds, conditions, places), not of blocks inside.
template <class S, class F>
void for_each_index(S& stmt, const F& visit) {
  const auto place = [&](auto& p) {
    for (auto& index : p.index) visit(index);
  };
  std::visit(
      Overloaded{[](auto&) {},
                 [&](std::conditional_t<std::is_const_v<S>, const ForStmt, ForStmt>& s) {
                   for (auto& index : s.low) visit(index);
                   for (auto& index : s.high) visit(index);
                 },
                 [&](std::conditional_t<std::is_const_v<S>, const IfStmt, IfStmt>& s) {
                   for (auto& compare : s.compares) visit(compare.left);
                 },
                 [&](std::conditional_t<std::is_const_v<S>, const LoadStmt, LoadStmt>& s) { place(s.place); },
                 [&](std::conditional_t<std::is_const_v<S>, const IndexStmt, IndexStmt>& s) { visit(s.index); },
                 [&](std::conditional_t<std::is_const_v<S>, const StoreStmt, StoreStmt>& s) { place(s.place); },
                 [&](std::conditional_t<std::is_const_v<S>, const PrefetchStmt, PrefetchStmt>& s) { place(s.place); }},
      stmt.node);
}

// Every value argument of the statement itself and of the yields of its own blocks.
template <class S, class F>
void for_each_arg(S& stmt, const F& visit) {
  if (auto* def = std::get_if<DefStmt>(&stmt.node)) {
    for (auto& arg : def->args) visit(arg);
  } else if (auto* store = std::get_if<StoreStmt>(&stmt.node)) {
    visit(store->value);
  } else if (auto* loop = std::get_if<ForStmt>(&stmt.node)) {
    for (auto& arg : loop->body.yields) visit(arg);
  } else if (auto* choice = std::get_if<IfStmt>(&stmt.node)) {
    for (auto& arg : choice->then_block.yields) visit(arg);
    for (auto& arg : choice->else_block.yields) visit(arg);
  }
}

// The values that the statement defines.
std::vector<ValueId> results(const Stmt& stmt);

// What is known of each loop variable from the bounds of its loop; nothing for loaded values.
class VariableRanges {
 public:
  // To be called on entering the loop: the bounds may name outer variables.
  void enter(const ForStmt& loop);
  std::optional<Interval> of(const IndexAtom& atom) const;
  // Refers to this object: no copy for a question.
  operator RangeOf() const {
    return [this](const IndexAtom& atom) { return of(atom); };
  }

 private:
  std::vector<std::optional<Interval>> ranges_;
};

// The same kernel with ids in the order of the canonical text and indices canonical for those ids: scalars, then values
// by first appearance; buffers, works, locals; loop variables. Positions are kept.
Kernel renumbered(const Kernel& kernel);

// The most bytes of scratch that are live at once, each local rounded up to 64 bytes.
std::int64_t scratch_bytes(const Block& block, const Kernel& kernel);

bool is_block_axis(Binding binding);
bool is_grid_axis(Binding binding);
// "block.x", "threads", "" for none.
std::string_view name(Binding binding);

}  // namespace fusejit::ir
