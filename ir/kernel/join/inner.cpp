#include "ir/kernel/join/inner.h"

#include <algorithm>
#include <optional>
#include <set>

#include "ir/kernel/walk.h"

namespace fusejit::ir {
namespace {

const StoreStmt* store_to(const Stmt& stmt, MemId buffer) {
  const auto* store = std::get_if<StoreStmt>(&stmt.node);
  return store != nullptr && store->place.memory == buffer ? store : nullptr;
}

template <class S>
auto* place_of(S& stmt) {
  using P = std::conditional_t<std::is_const_v<S>, const Place, Place>;
  P* place = nullptr;
  std::visit(
      Overloaded{
          [](auto&) {}, [&](std::conditional_t<std::is_const_v<S>, const LoadStmt, LoadStmt>& s) { place = &s.place; },
          [&](std::conditional_t<std::is_const_v<S>, const StoreStmt, StoreStmt>& s) { place = &s.place; },
          [&](std::conditional_t<std::is_const_v<S>, const PrefetchStmt, PrefetchStmt>& s) { place = &s.place; }},
      stmt.node);
  return place;
}

// The terms of `index` in these variables, and the rest; nothing where a term has both.
struct Parts {
  Index outer, own;
};
std::optional<Parts> parts_of(const Index& index, const std::vector<VarId>& outer) {
  Parts parts;
  for (const IndexTerm& term : index.terms()) {
    const Index alone = Index::of(term.atom);
    bool in_outer = false, in_own = false;
    alone.for_each_leaf([&](const IndexAtom& leaf) {
      const bool is_outer =
          leaf.kind == AtomKind::variable && std::find(outer.begin(), outer.end(), leaf.id) != outer.end();
      (is_outer ? in_outer : in_own) = true;
    });
    if (in_outer && in_own) return std::nullopt;
    Index& part = in_outer ? parts.outer : parts.own;
    part = part + alone * term.coefficient;
  }
  parts.own = parts.own + index.constant();
  return parts;
}

// What all accesses to a buffer have in common, by dim, and how far the rest goes.
class Share {
 public:
  Share(const Block& body, const VariableRanges& ranges, const std::vector<VarId>& outer, MemId buffer)
      : outer_(outer), buffer_(buffer) {
    walk(body, ranges);
  }
  bool is_one() const { return is_one_ && !first_.empty(); }
  // Dims of which a round has more than one element.
  std::vector<std::size_t> dims() const {
    std::vector<std::size_t> dims;
    for (std::size_t d = 0; d < high_.size(); ++d)
      if (high_[d] > 0) dims.push_back(d);
    if (dims.empty()) dims.push_back(0);
    return dims;
  }
  std::int64_t extent(std::size_t d) const { return high_[d] + 1; }

 private:
  void walk(const Block& block, const VariableRanges& ranges) {
    for (const Stmt& stmt : block.statements) {
      const Place* place = place_of(stmt);
      if (place != nullptr && place->memory == buffer_ && !std::holds_alternative<PrefetchStmt>(stmt.node))
        access(*place, ranges);
      if (const auto* loop = std::get_if<ForStmt>(&stmt.node)) {
        VariableRanges inside = ranges;
        inside.enter(*loop);
        walk(loop->body, inside);
      } else if (const auto* choice = std::get_if<IfStmt>(&stmt.node)) {
        walk(choice->then_block, ranges), walk(choice->else_block, ranges);
      }
    }
  }
  void access(const Place& place, const VariableRanges& ranges) {
    std::vector<Index> outer;
    high_.resize(place.index.size());
    for (std::size_t d = 0; d < place.index.size(); ++d) {
      const std::optional<Parts> parts = parts_of(place.index[d], outer_);
      const std::optional<Interval> own = parts ? parts->own.interval(ranges) : std::nullopt;
      if (!own || own->low < 0) return void(is_one_ = false);
      outer.push_back(parts->outer);
      high_[d] = std::max(high_[d], own->high);
    }
    if (first_.empty()) first_ = outer;
    is_one_ = is_one_ && outer == first_;
  }

  const std::vector<VarId>& outer_;
  const MemId buffer_;
  bool is_one_ = true;
  std::vector<Index> first_;
  std::vector<std::int64_t> high_;
};

}  // namespace

void erase_statements(Block& block, const std::function<bool(const Stmt&)>& which) {
  std::erase_if(block.statements, which);
  for (Stmt& stmt : block.statements) {
    if (auto* loop = std::get_if<ForStmt>(&stmt.node)) erase_statements(loop->body, which);
    if (auto* choice = std::get_if<IfStmt>(&stmt.node))
      erase_statements(choice->then_block, which), erase_statements(choice->else_block, which);
  }
}

void remove_accesses(Block& block, MemId buffer) {
  erase_statements(block, [&](const Stmt& stmt) {
    const Place* place = place_of(stmt);
    return place != nullptr && place->memory == buffer;
  });
}

bool make_local(Kernel& kernel, Block& body, const VariableRanges& ranges, const std::vector<VarId>& outer,
                MemId buffer) {
  const Share share(body, ranges, outer, buffer);
  if (!share.is_one() || kernel.memories[static_cast<std::size_t>(buffer)].dtype == DType::b1) return false;
  Memory& memory = kernel.memories[static_cast<std::size_t>(buffer)];
  memory.kind = MemKind::scratch_local, memory.align = 0;
  memory.dims.clear();
  for (const std::size_t d : share.dims()) memory.dims.push_back(share.extent(d));
  for_each_stmt(body, [&](Stmt& stmt) {
    Place* place = place_of(stmt);
    if (place == nullptr || place->memory != buffer) return;
    std::vector<Index> own;
    for (const std::size_t d : share.dims()) own.push_back(parts_of(place->index[d], outer).value_or(Parts{}).own);
    place->index = std::move(own);
  });
  std::erase_if(body.statements, [&](const Stmt& stmt) {
    const auto* fetch = std::get_if<PrefetchStmt>(&stmt.node);
    return fetch != nullptr && fetch->place.memory == buffer;
  });
  body.statements.insert(body.statements.begin(), Stmt{LocalStmt{buffer}, {}});
  return true;
}

void forward_store(Block& body, MemId buffer) {
  int stores = 0;
  for_each_stmt(body, [&](const Stmt& stmt) { stores += store_to(stmt, buffer) != nullptr; });
  const auto found = std::find_if(body.statements.begin(), body.statements.end(),
                                  [&](const Stmt& stmt) { return store_to(stmt, buffer) != nullptr; });
  if (stores != 1 || found == body.statements.end()) return;
  const StoreStmt stored = *store_to(*found, buffer);
  Block after;
  std::move(found + 1, body.statements.end(), std::back_inserter(after.statements));
  std::set<ValueId> loaded;
  for_each_stmt(after, [&](const Stmt& stmt) {
    const auto* load = std::get_if<LoadStmt>(&stmt.node);
    if (load != nullptr && load->place == stored.place) loaded.insert(load->result);
  });
  for_each_stmt(after, [&](const Stmt& stmt) {
    for_each_index(stmt, [&](const Index& index) {
      index.for_each_leaf([&](const IndexAtom& leaf) {
        if (leaf.kind == AtomKind::value) loaded.erase(leaf.id);
      });
    });
    if (const auto* choice = std::get_if<IfStmt>(&stmt.node)) loaded.erase(choice->condition);
  });
  for_each_stmt(after, [&](Stmt& stmt) {
    for_each_arg(stmt, [&](Arg& arg) {
      if (!arg.is_literal() && loaded.contains(arg.value)) arg = stored.value;
    });
  });
  std::move(after.statements.begin(), after.statements.end(), found + 1);
}

}  // namespace fusejit::ir
