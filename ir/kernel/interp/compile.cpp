#include <algorithm>
#include <map>

#include "ir/kernel/interp/code.h"
#include "ir/kernel/math.h"
#include "ir/kernel/sites.h"
#include "ir/kernel/walk.h"

namespace fusejit::ir {
namespace {

class Compiler {
 public:
  explicit Compiler(const Kernel& kernel) : k_(kernel) {
    // Values, then loop variables, then literals and temporaries.
    code_.slots.resize(k_.values.size() + static_cast<std::size_t>(k_.variable_count));
  }

  Code run() {
    for (const KernelParam& p : k_.params)
      if (p.scalar >= 0) code_.scalars.push_back(slot(p.scalar));
    for (const Phase& phase : k_.phases) {
      Sequence sequence;
      block(phase.body, sequence);
      code_.phases.push_back(std::move(sequence));
    }
    return std::move(code_);
  }

 private:
  Slot slot(ValueId value) const { return static_cast<Slot>(value); }
  Slot variable_slot(VarId id) const { return static_cast<Slot>(k_.values.size() + static_cast<std::size_t>(id)); }
  DType dtype(ValueId value) const { return k_.values[static_cast<std::size_t>(value)]; }
  DType dtype(const Arg& a) const { return a.is_literal() ? a.literal.dtype : dtype(a.value); }
  Slot new_slot(Word word = 0) {
    code_.slots.push_back(word);
    return static_cast<Slot>(code_.slots.size() - 1);
  }
  Slot literal(Word word) {
    const auto [at, inserted] = literals_.try_emplace(word, 0);
    if (inserted) at->second = new_slot(word);
    return at->second;
  }
  Slot arg_slot(const Arg& a) { return a.is_literal() ? literal(a.literal.bits) : slot(a.value); }
  std::vector<Slot> slots(const std::vector<Arg>& args) {
    std::vector<Slot> list;
    for (const Arg& a : args) list.push_back(arg_slot(a));
    return list;
  }
  std::vector<Slot> slots(const std::vector<ValueId>& ids) const {
    std::vector<Slot> list;
    for (ValueId id : ids) list.push_back(slot(id));
    return list;
  }

  std::uint32_t affine(const Index& index) {
    std::vector<FlatTerm> terms;
    bool plain = true;
    for (const IndexTerm& t : index.terms()) {
      FlatTerm term{t.coefficient, TermKind::slot, 0, 0, t.atom.divisor};
      switch (t.atom.kind) {
        case AtomKind::variable:
          term.slot = variable_slot(t.atom.id);
          break;
        case AtomKind::value:
          term.slot = slot(t.atom.id);
          if (dtype(t.atom.id) == DType::i32) term.kind = TermKind::slot_i32;
          break;
        case AtomKind::quotient:
        case AtomKind::remainder:
          term.kind = t.atom.kind == AtomKind::quotient ? TermKind::quotient : TermKind::remainder;
          term.inner = affine(*t.atom.inner);
      }
      plain = plain && term.kind == TermKind::slot;
      terms.push_back(term);
    }
    code_.affines.push_back({static_cast<std::uint32_t>(code_.terms.size()), static_cast<std::uint32_t>(terms.size()),
                             index.constant(), plain});
    code_.terms.insert(code_.terms.end(), terms.begin(), terms.end());
    return static_cast<std::uint32_t>(code_.affines.size() - 1);
  }
  std::uint32_t address(const Place& place) {
    const std::vector<std::int64_t>& dims = k_.memories[static_cast<std::size_t>(place.memory)].dims;
    FJ_ASSERT(dims.size() == place.index.size(), "V3: {} indices of memory with {} dims", place.index.size(),
              dims.size());
    Index flat;
    for (std::size_t d = 0; d < dims.size(); ++d) flat = flat * dims[d] + place.index[d];
    return affine(flat);
  }

  void block(const Block& b, Sequence& into) {
    for (const Stmt& stmt : b.statements) std::visit([&](const auto& s) { statement(s, into); }, stmt.node);
  }
  void statement(const LocalStmt& s, Sequence& into) { into.push_back({.action = Action::local, .memory = s.memory}); }
  void statement(const ForStmt& s, Sequence& into) {
    auto loop = std::make_unique<LoopCode>();
    for (const Index& i : s.low) loop->low.push_back(affine(i));
    for (const Index& i : s.high) loop->high.push_back(affine(i));
    loop->variable = variable_slot(s.variable);
    loop->any_order = is_parallel(s.binding);
    loop->tree = s.binding == Binding::vector || is_block_axis(s.binding);
    std::uint32_t first = 0;
    for (Combiner c : s.combiners) {
      FJ_ASSERT(first < s.results.size(), "V6: a reduce has {} results", s.results.size());
      loop->parts.push_back({c, first, combiner_function(c, dtype(s.results[first]))});
      first += static_cast<std::uint32_t>(components(c));
    }
    FJ_ASSERT(first == s.results.size() && s.body.yields.size() == s.results.size(),
              "V6: a reduce of {} components yields {} values into {} results", first, s.body.yields.size(),
              s.results.size());
    for (ValueId r : s.results) loop->types.push_back(dtype(r));
    loop->results = slots(s.results);
    block(s.body, loop->body);
    loop->yields = slots(s.body.yields);
    into.push_back({.action = Action::loop, .extra = static_cast<std::uint32_t>(code_.loops.size())});
    code_.loops.push_back(std::move(loop));
  }
  void statement(const IfStmt& s, Sequence& into) {
    auto branch = std::make_unique<BranchCode>();
    branch->has_condition = s.condition >= 0;
    if (branch->has_condition) branch->condition = slot(s.condition);
    for (const Compare& c : s.compares) branch->tests.push_back({affine(c.left), c.kind, c.right});
    block(s.then_block, branch->then_code);
    block(s.else_block, branch->else_code);
    FJ_ASSERT(s.then_block.yields.size() == s.results.size() && s.else_block.yields.size() == s.results.size(),
              "V6: the sides of an if do not yield its {} results", s.results.size());
    branch->results = slots(s.results);
    branch->then_yields = slots(s.then_block.yields), branch->else_yields = slots(s.else_block.yields);
    into.push_back({.action = Action::branch, .extra = static_cast<std::uint32_t>(code_.branches.size())});
    code_.branches.push_back(std::move(branch));
  }
  void statement(const DefStmt& s, Sequence& into) {
    std::vector<Slot> args = slots(s.args);
    std::vector<DType> types;
    for (const Arg& a : s.args) types.push_back(dtype(a));
    if (s.results.size() == 4) {  // philox
      Instruction instruction{.action = Action::philox, .extra = static_cast<std::uint32_t>(code_.generics.size())};
      for (std::size_t i = 0; i < 3; ++i) instruction.args[i] = args.at(i);
      into.push_back(instruction);
      code_.generics.push_back({s.op, DType::u32, slots(s.results), {}});
      return;
    }
    FJ_ASSERT(s.results.size() == 1, "V6: {} with {} results", name(s.op), s.results.size());
    define(s.op, slot(s.results[0]), dtype(s.results[0]), args, types, into);
  }
  void define(Op op, Slot result, DType type, const std::vector<Slot>& args, const std::vector<DType>& types,
              Sequence& into) {
    const OpDef& row = op_def(op);
    FJ_ASSERT(!args.empty() && args.size() <= 3, "V6: {} with {} operands", row.name, args.size());
    if (!(types[0] == DType::f64 ? row.fragment_f64 : row.fragment_f32).empty() && is_float(types[0]))
      return inline_fragment(fragment(op, types[0], has_fma(k_.isa)), result, args, into);
    Instruction instruction{.action = Action::scalar, .result = result};
    std::copy(args.begin(), args.end(), instruction.args);
    instruction.fn = op == Op::cast ? direct_cast(types[0], type) : direct_function(op, types[0]);
    if (!instruction.fn) {
      instruction.action = Action::generic;
      instruction.extra = static_cast<std::uint32_t>(code_.generics.size());
      code_.generics.push_back({op, type, args, types});
    }
    into.push_back(instruction);
  }
  void inline_fragment(const Fragment& f, Slot result, const std::vector<Slot>& args, Sequence& into) {
    std::vector<Slot> map = args;
    while (map.size() < f.values.size()) map.push_back(new_slot());
    const auto slot_of = [&](const Arg& a) {
      return a.is_literal() ? literal(a.literal.bits) : map[static_cast<std::size_t>(a.value)];
    };
    for (const DefStmt& d : f.definitions) {
      std::vector<Slot> inner;
      std::vector<DType> types;
      for (const Arg& a : d.args) {
        inner.push_back(slot_of(a));
        types.push_back(a.is_literal() ? a.literal.dtype : f.values[static_cast<std::size_t>(a.value)]);
      }
      const auto id = static_cast<std::size_t>(d.results[0]);
      define(d.op, map[id], f.values[id], inner, types, into);
    }
    into.push_back({.action = Action::scalar,
                    .result = result,
                    .args = {slot_of(f.result), 0, 0},
                    .fn = direct_cast(DType::f32, DType::f32)});
  }
  void statement(const LoadStmt& s, Sequence& into) {
    into.push_back(
        {.action = Action::load, .memory = s.place.memory, .result = slot(s.result), .extra = address(s.place)});
  }
  void statement(const IndexStmt& s, Sequence& into) {
    Instruction instruction{.action = Action::index, .result = slot(s.result), .extra = affine(s.index)};
    instruction.memory = static_cast<int>(dtype(s.result));
    into.push_back(instruction);
  }
  void statement(const StoreStmt& s, Sequence& into) {
    into.push_back({.action = Action::store,
                    .memory = s.place.memory,
                    .args = {arg_slot(s.value), 0, 0},
                    .extra = address(s.place)});
  }
  void statement(const PrefetchStmt&, Sequence&) {}

  const Kernel& k_;
  Code code_;
  std::map<Word, Slot> literals_;
};

}  // namespace

Code compile_for_interpreter(const Kernel& kernel) { return Compiler(kernel).run(); }

}  // namespace fusejit::ir
