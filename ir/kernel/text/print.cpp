// The canonical text of a kernel (kernel-ir.md §11).
#include <fmt/format.h>

#include "ir/kernel/text/names.h"
#include "ir/kernel/walk.h"

namespace fusejit::ir {
namespace {

class Printer {
 public:
  explicit Printer(const Kernel& kernel) : k_(kernel), names_(kernel) {}

  std::string run(std::string_view name) {
    std::string params;
    for (const KernelParam& p : k_.params) {
      if (!params.empty()) params += ", ";
      params += p.memory >= 0 ? buffer(p.memory) : fmt::format("{}: {} param", names_.value(p.scalar), dtype(p.scalar));
    }
    out_.open(fmt::format("kernel @{}({}) on {} {{", name, params, fusejit::name(k_.isa)));
    for (MemId work : k_.works) out_.line("work " + typed(work) + alignment(work));
    for (const Phase& phase : k_.phases) {
      out_.open(phase.registers == 0 ? "phase {" : fmt::format("phase registers {} {{", phase.registers));
      body(phase.body);
      out_.close();
    }
    out_.close();
    return std::move(out_).str();
  }

 private:
  const Memory& memory(MemId id) const { return k_.memories[static_cast<std::size_t>(id)]; }
  std::string_view dtype(ValueId id) const { return fusejit::name(k_.values[static_cast<std::size_t>(id)]); }
  std::string arg(const Arg& a) const { return a.is_literal() ? literal_text(a.literal) : names_.value(a.value); }

  template <class T, class F>
  static std::string list(const std::vector<T>& items, const F& text) {
    std::string s;
    for (const T& item : items) s += (s.empty() ? "" : ", ") + text(item);
    return s;
  }
  std::string values(const std::vector<ValueId>& ids) const {
    return list(ids, [&](ValueId id) { return names_.value(id); });
  }
  // " : f32, i64", or nothing without results.
  std::string types(const std::vector<ValueId>& ids) const {
    return ids.empty() ? "" : " : " + list(ids, [&](ValueId id) { return std::string(dtype(id)); });
  }
  std::string assigned(const std::vector<ValueId>& ids) const { return ids.empty() ? "" : values(ids) + " = "; }

  std::string typed(MemId id) const {
    const Memory& m = memory(id);
    return fmt::format("{}: {}[{}]", names_.memory(id), fusejit::name(m.dtype), fmt::join(m.dims, ","));
  }
  std::string alignment(MemId id) const {
    const Memory& m = memory(id);
    return m.align == 0 || m.align == bytes(m.dtype) ? "" : fmt::format(" align {}", m.align);
  }
  std::string buffer(MemId id) const {
    static constexpr const char* kAccess[] = {"read", "write", "update"};
    return fmt::format("{} {}{}", typed(id), kAccess[static_cast<int>(memory(id).kind)], alignment(id));
  }

  std::string compare(const Compare& c) const {
    static constexpr const char* kSigns[] = {"<", ">=", "=="};
    return fmt::format("{} {} {}", names_.index(c.left), kSigns[static_cast<int>(c.kind)], c.right);
  }
  std::string bound(const std::vector<Index>& b, const char* both) const {
    if (b.size() == 1) return names_.index(b[0]);
    return fmt::format("{}({}, {})", both, names_.index(b[0]), names_.index(b[1]));
  }

  void body(const Block& b) {
    for (const Stmt& stmt : b.statements) std::visit([&](const auto& s) { statement(s); }, stmt.node);
    if (!b.yields.empty()) out_.line("yield " + list(b.yields, [&](const Arg& a) { return arg(a); }));
  }
  void statement(const LocalStmt& s) {
    const Memory& m = memory(s.memory);
    out_.line(fmt::format("local {} {}{}", typed(s.memory), m.kind == MemKind::register_local ? "register" : "scratch",
                          m.has_init ? " = " + literal_text(m.init) : ""));
  }
  void statement(const ForStmt& s) {
    std::string head = fmt::format("{}for {} in {}..{}", assigned(s.results), names_.variable(s.variable),
                                   bound(s.low, "max"), bound(s.high, "min"));
    if (s.binding != Binding::none) head.append(" ").append(name(s.binding));
    if (s.copies > 0) head += fmt::format(" unroll {}", s.copies);
    if (!s.combiners.empty()) {
      const std::string combiners = list(s.combiners, [](Combiner c) { return std::string(name(c)); });
      head += " reduce " + (s.combiners.size() == 1 ? combiners : "(" + combiners + ")") + types(s.results);
    }
    out_.open(head + " {");
    body(s.body);
    out_.close();
  }
  void statement(const IfStmt& s) {
    std::string condition = s.condition >= 0 ? names_.value(s.condition) : "";
    for (const Compare& c : s.compares) condition += (condition.empty() ? "" : " and ") + compare(c);
    out_.open(fmt::format("{}if {}{} {{", assigned(s.results), condition, types(s.results)));
    body(s.then_block);
    if (!s.else_block.statements.empty() || !s.else_block.yields.empty()) {
      out_.reopen("} else {");
      body(s.else_block);
    }
    out_.close();
  }
  void statement(const DefStmt& s) {
    out_.line(fmt::format("{}{}({}){}", assigned(s.results), name(s.op),
                          list(s.args, [&](const Arg& a) { return arg(a); }), types(s.results)));
  }
  void statement(const LoadStmt& s) {
    out_.line(fmt::format("{} = load {} : {}", names_.value(s.result), names_.place(s.place), dtype(s.result)));
  }
  void statement(const IndexStmt& s) {
    out_.line(fmt::format("{} = index({}) : {}", names_.value(s.result), names_.index(s.index), dtype(s.result)));
  }
  void statement(const StoreStmt& s) {
    out_.line(fmt::format("store {}, {}{}", names_.place(s.place), arg(s.value), s.non_temporal ? " nt" : ""));
  }
  void statement(const PrefetchStmt& s) {
    static constexpr const char* kKinds[] = {"l1", "l2", "write"};
    out_.line(fmt::format("prefetch {} {}", names_.place(s.place), kKinds[static_cast<int>(s.kind)]));
  }

  const Kernel& k_;
  Names names_;
  Writer out_;
};

}  // namespace

std::string print(const Kernel& kernel) { return Printer(renumbered(kernel)).run(kernel.name); }

std::string kernel_key_text(const Kernel& kernel) { return Printer(renumbered(kernel)).run("k"); }

}  // namespace fusejit::ir
