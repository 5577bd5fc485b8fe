#include "ir/kernel/kernel_set.h"

#include "ir/base/hash.h"

namespace fusejit::ir {
namespace {

// Every list stands behind its length and every choice behind its number, so that no two kernels have the same words.
class Flattener {
 public:
  KernelWords run(const Kernel& kernel) {
    list(kernel.name, [&](char c) { word(c); });
    word(static_cast<int>(kernel.isa));
    list(kernel.params, [&](const KernelParam& p) { word(p.memory), word(p.scalar); });
    ids(kernel.works);
    list(kernel.memories, [&](const Memory& m) { memory(m); });
    list(kernel.values, [&](DType t) { word(static_cast<int>(t)); });
    word(kernel.variable_count);
    list(kernel.phases, [&](const Phase& phase) { word(phase.registers), block(phase.body); });
    return std::move(words_);
  }

 private:
  void word(std::int64_t w) { words_.push_back(w); }
  template <class List, class F>
  void list(const List& items, const F& each) {
    word(static_cast<std::int64_t>(items.size()));
    for (const auto& item : items) each(item);
  }
  void ids(const std::vector<int>& ids) {
    list(ids, [&](int id) { word(id); });
  }
  void memory(const Memory& m) {
    word(static_cast<int>(m.kind)), word(static_cast<int>(m.dtype)), word(m.align), word(m.has_init);
    list(m.dims, [&](std::int64_t d) { word(d); });
    scalar(m.init);
  }
  void scalar(const Scalar& s) { word(static_cast<int>(s.dtype)), word(static_cast<std::int64_t>(s.bits)); }
  void arg(const Arg& a) {
    word(a.value);
    if (a.is_literal()) scalar(a.literal);
  }
  void index(const Index& i) {
    word(i.constant());
    list(i.terms(), [&](const IndexTerm& t) {
      word(t.coefficient), word(static_cast<int>(t.atom.kind));
      if (!t.atom.inner) return word(t.atom.id);
      word(t.atom.divisor), index(*t.atom.inner);
    });
  }
  void indices(const std::vector<Index>& all) {
    list(all, [&](const Index& i) { index(i); });
  }
  void place(const Place& p) { word(p.memory), indices(p.index); }

  void block(const Block& b) {
    list(b.statements, [&](const Stmt& stmt) {
      word(stmt.at.line), word(stmt.at.column), word(static_cast<std::int64_t>(stmt.node.index()));
      std::visit([&](const auto& s) { statement(s); }, stmt.node);
    });
    list(b.yields, [&](const Arg& a) { arg(a); });
  }
  void statement(const LocalStmt& s) { word(s.memory); }
  void statement(const ForStmt& s) {
    ids(s.results), word(s.variable), indices(s.low), indices(s.high), word(static_cast<int>(s.binding));
    list(s.combiners, [&](Combiner c) { word(static_cast<int>(c)); });
    block(s.body), word(s.copies);
  }
  void statement(const IfStmt& s) {
    ids(s.results), word(s.condition);
    list(s.compares, [&](const Compare& c) { index(c.left), word(static_cast<int>(c.kind)), word(c.right); });
    block(s.then_block), block(s.else_block);
  }
  void statement(const DefStmt& s) {
    FJ_ASSERT(s.attrs.empty(), "a definition with attributes, which kernels have no text for");
    ids(s.results), word(static_cast<int>(s.op));
    list(s.args, [&](const Arg& a) { arg(a); });
  }
  void statement(const LoadStmt& s) { word(s.result), place(s.place), word(s.through_views); }
  void statement(const IndexStmt& s) { word(s.result), index(s.index); }
  void statement(const StoreStmt& s) { place(s.place), arg(s.value), word(s.non_temporal); }
  void statement(const PrefetchStmt& s) { place(s.place), word(static_cast<int>(s.kind)); }

  KernelWords words_;
};

}  // namespace

KernelWords words_of(const Kernel& kernel) { return Flattener().run(kernel); }

std::size_t KernelSet::HashOfWords::operator()(const KernelWords& words) const {
  return hash_bytes(words.data(), words.size() * sizeof(words[0])).low;
}

std::shared_ptr<const Kernel> KernelSet::finish(KernelBuilder&& builder,
                                                const std::function<void(Kernel&)>& attributes) {
  KernelWords words = words_of(builder.written());
  const auto known = finished_.find(words);
  if (known != finished_.end()) return known->second;
  auto kernel = std::make_shared<const Kernel>(std::move(builder).finish(attributes));
  return finished_.emplace(std::move(words), std::move(kernel)).first->second;
}

}  // namespace fusejit::ir
