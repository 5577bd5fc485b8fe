#include "ir/kernel/join/rename.h"

#include <algorithm>
#include <optional>

#include "ir/base/at.h"
#include "ir/kernel/walk.h"

namespace fusejit::ir {
Renaming::Renaming(const Kernel& first, const Kernel& second, const Joint& joint, Kernel& into)
    : second_(second),
      kernel_(into),
      first_variable_(into.variable_count),
      first_value_(static_cast<int>(into.values.size())) {
  into.variable_count += second.variable_count;
  into.values.insert(into.values.end(), second.values.begin(), second.values.end());
  memories_.assign(second.memories.size(), -1);
  for (std::size_t b = 0; b < second.params.size(); ++b) {
    if (joint.same[b] >= 0) memories_[at(second.params[b].memory)] = first.params[at(joint.same[b])].memory;
  }
  for (std::size_t m = 0; m < memories_.size(); ++m) {
    if (memories_[m] >= 0) continue;
    memories_[m] = static_cast<MemId>(into.memories.size());
    into.memories.push_back(second.memories[m]);
  }
}

void Renaming::block(Block& block) const {
  for_each_stmt(block, [&](Stmt& stmt) { statement(stmt); });
}

VarId Renaming::variable(VarId id) const {
  const auto found = common_.find(id);
  return found == common_.end() ? id + first_variable_ : found->second;
}

Index Renaming::index(const Index& index) const {
  return index.substitute([&](const IndexAtom& leaf) -> std::optional<Index> {
    return leaf.kind == AtomKind::value ? Index::value(leaf.id + first_value_) : Index::variable(variable(leaf.id));
  });
}

void Renaming::values(std::vector<ValueId>& ids) const {
  for (ValueId& id : ids) id += first_value_;
}

// The same element, in the dims that the first declares.
void Renaming::place(Place& place) const {
  const std::vector<std::int64_t>& its = second_.memories[at(place.memory)].dims;
  const std::vector<std::int64_t>& declared = kernel_.memories[at(memory(place.memory))].dims;
  if (its != declared) {
    Index position = 0;
    for (std::size_t d = 0; d < its.size(); ++d) position = position * its[d] + place.index[d];
    place.index.resize(declared.size());
    for (std::size_t d = declared.size(); d-- > 0;) {
      place.index[d] = d == 0 ? position : position % declared[d];
      position = position / declared[d];
    }
  }
  place.memory = memory(place.memory);
}

void Renaming::statement(Stmt& stmt) const {
  for_each_index(stmt, [&](Index& i) { i = index(i); });
  for_each_arg(stmt, [&](Arg& arg) {
    if (!arg.is_literal()) arg.value += first_value_;
  });
  std::visit(
      Overloaded{[&](LocalStmt& s) { s.memory = memory(s.memory); },
                 [&](ForStmt& s) { values(s.results), s.variable = variable(s.variable); },
                 [&](IfStmt& s) {
                   values(s.results);
                   if (s.condition >= 0) s.condition += first_value_;
                 },
                 [&](DefStmt& s) { values(s.results); }, [&](LoadStmt& s) { s.result += first_value_, place(s.place); },
                 [&](IndexStmt& s) { s.result += first_value_; }, [&](StoreStmt& s) { place(s.place); },
                 [&](PrefetchStmt& s) { place(s.place); }},
      stmt.node);
}

bool declare_together(Kernel& into, const Kernel& first, const Kernel& second, const Joint& joint) {
  for (std::size_t b = 0; b < second.params.size(); ++b) {
    if (joint.same[b] < 0) continue;
    Memory& mine = into.memories[at(first.params[at(joint.same[b])].memory)];
    const Memory& its = second.memories[at(second.params[b].memory)];
    if (mine.dtype != its.dtype || mine.elements() != its.elements()) return false;
    if (mine.dtype == DType::b1 && mine.dims != its.dims) return false;
    mine.align = std::max(mine.align, its.align);
    if (mine.kind == MemKind::read) mine.kind = its.kind;
  }
  return true;
}

void sign(Joined& joined, const Kernel& first, const Kernel& second, const Joint& joint, const Renaming& renaming) {
  for (std::size_t b = 0; b < first.params.size(); ++b) joined.first.push_back(static_cast<int>(b));
  for (std::size_t b = 0; b < second.params.size(); ++b) {
    joined.second.push_back(joint.same[b]);
    if (joint.same[b] >= 0) continue;
    joined.second.back() = static_cast<int>(joined.kernel.params.size());
    joined.kernel.params.push_back({renaming.memory(second.params[b].memory), -1});
  }
}

}  // namespace fusejit::ir
