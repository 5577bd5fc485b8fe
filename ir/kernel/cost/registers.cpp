// Vector registers that the innermost loops of an x86 kernel need.
#include <algorithm>
#include <map>

#include "ir/kernel/cost/parts.h"
#include "ir/kernel/verify/verify.h"

namespace fusejit::ir {
namespace {

constexpr std::size_t kMaxUnrolled = 50000;  // beyond the limit of a kernel; what follows is not looked at

// Which values take a vector register: those that differ by lane and uniform ones that meet them, but not those whose
// only use is to be stored to a register local, which is their register.
struct ValueFacts {
  explicit ValueFacts(const Kernel& kernel) : takes_register(varying_values(kernel)) {
    const std::vector<bool> varying = takes_register;
    std::vector<int> uses(varying.size());
    std::vector<bool> stored(varying.size());
    for_each_with_path(kernel, [&](const Stmt& stmt, const Path&, std::size_t) {
      const std::vector<ValueId> defined = results(stmt);
      const bool lanes = std::holds_alternative<DefStmt>(stmt.node) && varying[static_cast<std::size_t>(defined[0])];
      const auto* store = std::get_if<StoreStmt>(&stmt.node);
      for_each_arg(stmt, [&](const Arg& a) {
        if (a.is_literal()) return;
        const auto id = static_cast<std::size_t>(a.value);
        ++uses[id];
        if (lanes) takes_register[id] = true;
        if (store && kernel.memories[static_cast<std::size_t>(store->place.memory)].kind == MemKind::register_local)
          stored[id] = true;
      });
    });
    for (std::size_t i = 0; i < uses.size(); ++i)
      if (uses[i] == 1 && stored[i]) takes_register[i] = false;
  }
  std::vector<bool> takes_register;
};

// The unrolled text of a loop body as definitions and uses of things that take registers.
class Unrolled {
 public:
  Unrolled(const Kernel& kernel, const ForStmt& loop, const ValueFacts& facts, std::int64_t lanes, std::int64_t width)
      : k_(kernel), facts_(facts), lanes_(lanes), width_(width) {
    block(loop.body);
    for (const Arg& a : loop.body.yields) use(a);
    if (loop.binding == Binding::none)
      for (ValueId r : loop.results) accumulators_ += registers(dtype(r));
  }

  int most() const {
    // What is defined outside lives through the loop.
    std::map<std::size_t, int> starts, ends;
    int live = accumulators_;
    for (const auto& [key, range] : ranges_) {
      if (!range.inside) {
        live += range.registers;
        continue;
      }
      if (range.last <= range.first) continue;
      starts[range.first] += range.registers;
      ends[range.last] += range.registers;
    }
    int most = live;
    std::vector<std::pair<std::size_t, int>> events;
    for (const auto& [at, n] : starts) events.push_back({at * 2 + 1, n});
    for (const auto& [at, n] : ends) events.push_back({at * 2, -n});  // freed where it is last used
    std::sort(events.begin(), events.end());
    for (const auto& event : events) live += event.second, most = std::max(most, live);
    return most;
  }

 private:
  struct Key {
    bool is_element;                  // of a register local
    int id;                           // MemId or ValueId
    std::vector<std::int64_t> index;  // element, or the copy of an unrolled body
    auto operator<=>(const Key&) const = default;
  };
  struct Range {
    std::size_t first, last;
    int registers;
    bool inside;
  };

  DType dtype(ValueId id) const { return k_.values[static_cast<std::size_t>(id)]; }
  int registers(DType t) const {
    if (t == DType::boolean) return 0;
    return static_cast<int>((lanes_ * bytes(t) + width_ - 1) / width_);
  }
  std::int64_t constant(const Index& index) const {
    return index.evaluate([&](const IndexAtom& leaf) {
      const auto found = leaf.kind == AtomKind::variable ? unrolled_.find(leaf.id) : unrolled_.end();
      return found == unrolled_.end() ? 0 : found->second;
    });
  }
  bool is_constant(const Index& index) const {
    bool all = true;
    index.for_each_leaf(
        [&](const IndexAtom& leaf) { all = all && leaf.kind == AtomKind::variable && unrolled_.count(leaf.id) > 0; });
    return all;
  }

  bool takes_register(ValueId id) const { return facts_.takes_register[static_cast<std::size_t>(id)]; }
  void touch(const Key& key, int registers, bool defines) {
    const auto [at, inserted] = ranges_.try_emplace(key, Range{now_, now_, registers, defines});
    if (!inserted) at->second.last = now_;
  }
  Key key_of(ValueId id) const {
    const auto found = copies_.find(id);
    return {false, id, found == copies_.end() ? std::vector<std::int64_t>{} : found->second};
  }
  void use(const Arg& a) {
    if (a.is_literal() || !takes_register(a.value)) return;
    const auto alias = elements_.find(a.value);
    if (alias != elements_.end()) return touch(alias->second, registers(dtype(a.value)), false);
    touch(key_of(a.value), registers(dtype(a.value)), false);
  }
  void define(ValueId id) {
    std::vector<std::int64_t> copy;
    for (const auto& [variable, value] : unrolled_) copy.push_back(value);
    copies_[id] = std::move(copy);
    elements_.erase(id);
    if (takes_register(id)) touch(key_of(id), registers(dtype(id)), true);
  }
  Key element(const Place& place) const {
    Key key{true, place.memory, {}};
    for (const Index& index : place.index) key.index.push_back(constant(index));
    return key;
  }
  const Memory& memory(const Place& place) const { return k_.memories[static_cast<std::size_t>(place.memory)]; }

  void block(const Block& b) {
    for (const Stmt& stmt : b.statements) {
      if (++now_ > kMaxUnrolled) return;
      std::visit([&](const auto& s) { statement(s); }, stmt.node);
    }
  }
  void statement(const LocalStmt& s) { local_inside_[s.memory] = true; }
  void statement(const ForStmt& s) {
    if (s.binding != Binding::unroll) return;  // innermost loops hold none
    const std::int64_t low = s.low[0].constant(), copies = unrolled_copies(s);
    for (std::int64_t v = 0; v < copies; ++v) {
      unrolled_[s.variable] = low + v;
      block(s.body);
      for (const Arg& a : s.body.yields) use(a);
    }
    unrolled_.erase(s.variable);
    for (ValueId r : s.results) define(r);
  }
  void statement(const IfStmt& s) {
    bool known = s.condition < 0, holds = true;
    for (const Compare& c : s.compares) {
      known = known && is_constant(c.left);
      if (!known) break;
      const std::int64_t left = constant(c.left);
      holds = holds && (c.kind == CompareKind::lt   ? left < c.right
                        : c.kind == CompareKind::ge ? left >= c.right
                                                    : left == c.right);
    }
    for (const bool in_else : {false, true}) {
      if (known && holds == in_else) continue;
      const Block& side = in_else ? s.else_block : s.then_block;
      block(side);
      for (const Arg& a : side.yields) use(a);
    }
    for (ValueId r : s.results) define(r);
  }
  void statement(const DefStmt& s) {
    for (const Arg& a : s.args) use(a);
    for (ValueId r : s.results) define(r);
  }
  void statement(const LoadStmt& s) {
    define(s.result);
    if (memory(s.place).kind != MemKind::register_local) return;
    // A load of a register local is the register itself.
    ranges_.erase(key_of(s.result));
    const Key key = element(s.place);
    touch(key, registers(dtype(s.result)), local_inside_.count(s.place.memory) > 0);
    elements_[s.result] = key;
  }
  void statement(const IndexStmt& s) { define(s.result); }
  void statement(const StoreStmt& s) {
    use(s.value);
    if (memory(s.place).kind != MemKind::register_local) return;
    const DType t = memory(s.place).dtype;
    touch(element(s.place), registers(t), local_inside_.count(s.place.memory) > 0);
  }
  void statement(const PrefetchStmt&) {}

  const Kernel& k_;
  const ValueFacts& facts_;
  std::int64_t lanes_, width_;
  std::size_t now_ = 0;
  int accumulators_ = 0;
  std::map<VarId, std::int64_t> unrolled_;
  std::map<ValueId, std::vector<std::int64_t>> copies_;
  std::map<ValueId, Key> elements_;  // values that are elements of register locals
  std::map<MemId, bool> local_inside_;
  std::map<Key, Range> ranges_;
};

bool holds_loop(const Block& body) {
  bool found = false;
  for_each_stmt(body, [&](const Stmt& stmt) {
    const auto* loop = std::get_if<ForStmt>(&stmt.node);
    found = found || (loop && loop->binding != Binding::unroll);
  });
  return found;
}

}  // namespace

int vector_registers(const Kernel& kernel) {
  std::int64_t width = 0;
  switch (kernel.isa) {
    case Isa::x86_avx512:
    case Isa::x86_avx512bf16:
    case Isa::x86_amx:
      width = 64;
      break;
    case Isa::x86_avx2:
      width = 32;
      break;
    case Isa::x86_v2:
      width = 16;
      break;
    default:
      return 0;
  }
  const ValueFacts facts(kernel);
  int most = 0;
  for_each_with_path(kernel, [&](const Stmt& stmt, const Path& path, std::size_t) {
    const auto* loop = std::get_if<ForStmt>(&stmt.node);
    if (!loop || loop->binding == Binding::unroll || holds_loop(loop->body)) return;
    std::int64_t lanes = loop->binding == Binding::vector ? loop->high[0].constant() : 1;
    for (const Enclosing& e : path)
      if (e.loop && e.loop->binding == Binding::vector) lanes = e.loop->high[0].constant();
    if (lanes > 1) most = std::max(most, Unrolled(kernel, *loop, facts, lanes, width).most());
  });
  return most;
}

}  // namespace fusejit::ir
