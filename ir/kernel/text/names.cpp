#include "ir/kernel/text/names.h"

#include <fmt/format.h>

#include <cstdlib>

namespace fusejit::ir {

Names::Names(const Kernel& k) : memories_(k.memories.size()) {
  const auto name = [&](MemId id) -> std::string& { return memories_[static_cast<std::size_t>(id)]; };
  for (std::size_t i = 0; i < k.params.size(); ++i) {
    const std::string text = fmt::format("%p{}", i);
    if (k.params[i].memory >= 0) {
      name(k.params[i].memory) = text;
    } else {
      scalars_.push_back(text);
    }
  }
  for (std::size_t i = 0; i < k.works.size(); ++i) name(k.works[i]) = fmt::format("%w{}", i);
  int locals = 0;
  for (std::size_t i = 0; i < k.memories.size(); ++i)
    if (k.memories[i].is_local()) memories_[i] = fmt::format("%l{}", locals++);
}

std::string Names::value(ValueId id) const {
  const auto scalars = static_cast<int>(scalars_.size());
  return id < scalars ? scalars_[static_cast<std::size_t>(id)] : fmt::format("%{}", id - scalars);
}

const std::string& Names::memory(MemId id) const { return memories_[static_cast<std::size_t>(id)]; }

std::string Names::variable(VarId id) const { return fmt::format("%i{}", id); }

std::string Names::atom(const IndexAtom& a, bool alone) const {
  if (a.kind == AtomKind::variable) return variable(a.id);
  if (a.kind == AtomKind::value) return value(a.id);
  const Index::Terms& terms = a.inner->terms();
  const bool leaf = terms.size() == 1 && a.inner->constant() == 0 && terms[0].coefficient == 1 && !terms[0].atom.inner;
  const std::string inner = leaf ? index(*a.inner) : "(" + index(*a.inner) + ")";
  const std::string text = fmt::format("{} {} {}", inner, a.kind == AtomKind::quotient ? '/' : '%', a.divisor);
  return alone ? text : "(" + text + ")";
}

std::string Names::index(const Index& x) const {
  std::string s;
  for (const IndexTerm& t : x.terms()) {
    if (s.empty()) {
      if (t.coefficient < 0) s = "-";
    } else {
      s += t.coefficient < 0 ? " - " : " + ";
    }
    const std::int64_t c = std::abs(t.coefficient);
    s += atom(t.atom, c == 1);
    if (c != 1) s += fmt::format("*{}", c);
  }
  if (s.empty()) return std::to_string(x.constant());
  if (x.constant() != 0) s += fmt::format(" {} {}", x.constant() < 0 ? '-' : '+', std::abs(x.constant()));
  return s;
}

std::string Names::place(const Place& p) const {
  std::string s = memory(p.memory) + "[";
  for (std::size_t i = 0; i < p.index.size(); ++i) s += (i == 0 ? "" : ", ") + index(p.index[i]);
  return s + "]";
}

}  // namespace fusejit::ir
