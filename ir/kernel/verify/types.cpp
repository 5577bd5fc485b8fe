// V6: dtypes are equal everywhere and ops are used as their rows say. V9: no arithmetic that the isa does not have.
#include "ir/kernel/types.h"

#include "ir/kernel/verify/verify.h"

namespace fusejit::ir {
namespace {

class Types {
 public:
  explicit Types(const Kernel& kernel) : k_(kernel) {}

  void run() {
    for (const KernelParam& p : k_.params) {
      if (p.scalar < 0) continue;
      const DType t = dtype(p.scalar);
      require(t == compute_type(t) && t != DType::b1, "a scalar parameter of {}", name(t));
    }
    for (const Memory& m : k_.memories) {
      if (m.dtype != DType::b1) continue;
      require(!m.is_local(), "a local of b1, which exists in buffers and works only");
      require(m.dims.size() == 1 || (!m.dims.empty() && m.dims.back() % 8 == 0),
              "the last dim of a b1 buffer is a multiple of 8 unless it has one dim");
    }
    bool stores = false;
    for_each_with_path(k_, [&](const Stmt& stmt, const Path&, std::size_t) {
      at_ = stmt.at;
      std::visit([&](const auto& s) { statement(s); }, stmt.node);
      for (ValueId id : results(stmt)) require(dtype(id) != DType::b1, "a value of b1, which exists in memory only");
      if (const auto* store = std::get_if<StoreStmt>(&stmt.node)) stores = stores || !memory(store->place).is_local();
    });
    at_ = {1, 1};
    require(stores, "the kernel stores nothing");
  }

 private:
  DType dtype(ValueId id) const { return k_.values[static_cast<std::size_t>(id)]; }
  DType dtype(const Arg& a) const { return a.is_literal() ? a.literal.dtype : dtype(a.value); }
  const Memory& memory(const Place& p) const { return k_.memories[static_cast<std::size_t>(p.memory)]; }
  template <class... Ts>
  void require(bool holds, fmt::format_string<Ts...> text, Ts&&... args) const {
    if (!holds) broken(at_, "V6", fmt::format(text, std::forward<Ts>(args)...));
  }

  void place(const Place& p) const {
    require(p.index.size() == memory(p).dims.size(), "{} indices of memory with {} dims", p.index.size(),
            memory(p).dims.size());
  }
  void yields(const Block& b, const std::vector<ValueId>& results) const {
    require(b.yields.size() == results.size(), "a block yields {} values for {} results", b.yields.size(),
            results.size());
    for (std::size_t i = 0; i < results.size(); ++i) {
      literal(b.yields[i]);
      require(dtype(b.yields[i]) == dtype(results[i]), "{} is yielded for a result of {}", name(dtype(b.yields[i])),
              name(dtype(results[i])));
    }
  }
  void literal(const Arg& a) const {
    if (!a.is_literal()) return;
    const DType t = a.literal.dtype;
    const std::int64_t width = t == DType::boolean ? 1 : bits(t);
    require(t != DType::b1, "a literal of b1, which exists in memory only");
    require(width == 64 || a.literal.bits >> width == 0, "a literal does not fit {}", name(t));
  }

  void statement(const LocalStmt& s) const {
    const Memory& m = k_.memories[static_cast<std::size_t>(s.memory)];
    require(!m.has_init || m.init.dtype == m.dtype, "a local of {} starts from a literal of {}", name(m.dtype),
            name(m.init.dtype));
  }
  void statement(const ForStmt& s) const {
    yields(s.body, s.results);
    std::size_t next = 0;
    for (Combiner c : s.combiners) {
      const auto n = static_cast<std::size_t>(components(c));
      require(next + n <= s.results.size(), "the combiners of a reduce have more than its {} components",
              s.results.size());
      combiner(c, s.results.data() + next);
      next += n;
    }
    require(next == s.results.size(), "the combiners of a reduce have {} components, its results are {}", next,
            s.results.size());
  }
  void combiner(Combiner c, const ValueId* results) const {
    std::vector<DType> types;
    for (int i = 0; i < components(c); ++i) types.push_back(dtype(results[i]));
    require(combines(c, types), "reduce {} does not combine {}", name(c), name(types[0]));
  }
  void statement(const IfStmt& s) const {
    if (s.condition >= 0)
      require(dtype(s.condition) == DType::boolean, "an if tests a bool, not {}", name(dtype(s.condition)));
    yields(s.then_block, s.results);
    yields(s.else_block, s.results);
  }
  void statement(const DefStmt& s) const {
    std::vector<DType> operands, types;
    for (const Arg& a : s.args) literal(a), operands.push_back(dtype(a));
    for (ValueId id : s.results) types.push_back(dtype(id));
    try {
      check_dtypes(s.op, operands, types);
    } catch (const UserError& error) {
      require(false, "{}", std::string(error.what()));
    }
    if (last_operand_is_shift_count(s.op)) {
      const Arg& n = s.args.back();
      require(n.is_literal() && n.literal.bits < static_cast<std::uint64_t>(bits(operands[0])),
              "{} takes a literal below the width", name(s.op));
    }
    if (s.op == Op::fma && !has_fma(k_.isa)) broken(at_, "V9", "x86:v2 has no fma");
    if ((s.op == Op::dot2 || s.op == Op::round_bf16) && !has_bf16(k_.isa))
      broken(at_, "V9", fmt::format("{} exists on x86:avx512bf16 and x86:amx only", name(s.op)));
  }
  void statement(const LoadStmt& s) const {
    place(s.place);
    require(dtype(s.result) == value_dtype(memory(s.place).dtype), "{} is loaded from memory of {}",
            name(dtype(s.result)), name(memory(s.place).dtype));
  }
  void statement(const IndexStmt& s) const {
    const DType t = dtype(s.result);
    require(t != DType::boolean && t == compute_type(t), "the value of an index as {}", name(t));
  }
  void statement(const StoreStmt& s) const {
    place(s.place);
    literal(s.value);
    require(dtype(s.value) == value_dtype(memory(s.place).dtype), "{} is stored to memory of {}", name(dtype(s.value)),
            name(memory(s.place).dtype));
    if (memory(s.place).kind == MemKind::read) broken(at_, "V1", "a read buffer is stored to");
  }
  void statement(const PrefetchStmt& s) const { place(s.place); }

  const Kernel& k_;
  Position at_ = {1, 1};
};

}  // namespace

void verify_types(const Kernel& kernel) { Types(kernel).run(); }

}  // namespace fusejit::ir
