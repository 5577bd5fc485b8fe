// Ids in the order of the canonical text (kernel-ir.md §11).
#include "ir/kernel/walk.h"

namespace fusejit::ir {
namespace {

class Renumber {
 public:
  explicit Renumber(const Kernel& from)
      : from_(from),
        variables_(static_cast<std::size_t>(from.variable_count), -1),
        values_(from.values.size(), -1),
        memories_(from.memories.size(), -1) {}

  Kernel run() {
    to_.name = from_.name, to_.isa = from_.isa;
    for (const KernelParam& p : from_.params) {
      if (p.memory >= 0) {
        to_.params.push_back({define_memory(p.memory), -1});
      } else {
        to_.params.push_back({-1, define_value(p.scalar)});
      }
    }
    for (MemId work : from_.works) to_.works.push_back(define_memory(work));
    to_.phases = from_.phases;
    for (Phase& phase : to_.phases) block(phase.body);
    return std::move(to_);
  }

 private:
  static int& slot(std::vector<int>& map, int id) {
    FJ_ASSERT(id >= 0 && static_cast<std::size_t>(id) < map.size(), "V8: a kernel names an id outside its tables");
    return map[static_cast<std::size_t>(id)];
  }
  MemId define_memory(MemId id) {
    slot(memories_, id) = static_cast<int>(to_.memories.size());
    to_.memories.push_back(from_.memories[static_cast<std::size_t>(id)]);
    return slot(memories_, id);
  }
  ValueId define_value(ValueId id) {
    slot(values_, id) = static_cast<int>(to_.values.size());
    to_.values.push_back(from_.values[static_cast<std::size_t>(id)]);
    return slot(values_, id);
  }
  void define(ValueId& id) { id = define_value(id); }
  void define(std::vector<ValueId>& ids) {
    for (ValueId& id : ids) define(id);
  }

  void use(std::vector<int>& map, int& id) {
    id = slot(map, id);
    FJ_ASSERT(id >= 0, "V8: a kernel uses an id before its definition");
  }
  void use(Arg& arg) {
    if (!arg.is_literal()) use(values_, arg.value);
  }
  void use(Index& index) {
    index = index.substitute([&](const IndexAtom& leaf) -> std::optional<Index> {
      int id = leaf.id;
      if (leaf.kind == AtomKind::variable) return use(variables_, id), Index::variable(id);
      return use(values_, id), Index::value(id);
    });
  }
  void use(Place& place) {
    use(memories_, place.memory);
    for (Index& index : place.index) use(index);
  }

  void block(Block& b) {
    for (Stmt& stmt : b.statements) std::visit([&](auto& s) { statement(s); }, stmt.node);
    for (Arg& arg : b.yields) use(arg);
  }
  void statement(LocalStmt& s) { s.memory = define_memory(s.memory); }
  void statement(ForStmt& s) {
    define(s.results);
    for (Index& index : s.low) use(index);
    for (Index& index : s.high) use(index);
    slot(variables_, s.variable) = to_.variable_count;
    s.variable = to_.variable_count++;
    block(s.body);
  }
  void statement(IfStmt& s) {
    define(s.results);
    if (s.condition >= 0) use(values_, s.condition);
    for (Compare& c : s.compares) use(c.left);
    block(s.then_block);
    block(s.else_block);
  }
  void statement(DefStmt& s) {
    for (Arg& arg : s.args) use(arg);
    define(s.results);
  }
  void statement(LoadStmt& s) { use(s.place), define(s.result); }
  void statement(IndexStmt& s) { use(s.index), define(s.result); }
  void statement(StoreStmt& s) { use(s.place), use(s.value); }
  void statement(PrefetchStmt& s) { use(s.place); }

  const Kernel& from_;
  Kernel to_;
  std::vector<int> variables_, values_, memories_;
};

}  // namespace

Kernel renumbered(const Kernel& kernel) { return Renumber(kernel).run(); }

}  // namespace fusejit::ir
