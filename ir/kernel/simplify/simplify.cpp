#include "ir/kernel/simplify/simplify.h"

#include <array>
#include <map>

#include "ir/kernel/interp/scalar.h"
#include "ir/kernel/prove.h"

namespace fusejit::ir {
namespace {

class Folder {
 public:
  explicit Folder(Kernel& kernel) : k_(kernel) {}

  void run() {
    for (Phase& phase : k_.phases) phase.body = block(std::move(phase.body));
  }

 private:
  DType dtype(const Arg& a) const {
    return a.is_literal() ? a.literal.dtype : k_.values[static_cast<std::size_t>(a.value)];
  }

  // --- replacements ---
  void replace(Arg& a) const {
    if (a.is_literal()) return;
    const auto found = values_.find(a.value);
    if (found != values_.end()) a = found->second;
  }
  void replace(Index& index) const {
    index = index
                .substitute([&](const IndexAtom& leaf) -> std::optional<Index> {
                  if (leaf.kind == AtomKind::variable) {
                    const auto found = variables_.find(leaf.id);
                    return found == variables_.end() ? std::nullopt : std::optional(found->second);
                  }
                  const auto found = values_.find(leaf.id);
                  if (found == values_.end()) return std::nullopt;
                  if (!found->second.is_literal()) return Index::value(found->second.value);
                  return Index(cast(found->second.literal, DType::i64).i64());
                })
                .simplify(ranges_);
  }

  Block block(Block from) {
    Block into;
    for (Stmt& stmt : from.statements) {
      for_each_index(stmt, [&](Index& index) { replace(index); });
      std::visit([&](auto& s) { statement(std::move(s), stmt.at, into); }, stmt.node);
    }
    into.yields = std::move(from.yields);
    for (Arg& a : into.yields) replace(a);
    return into;
  }
  // The statements and what the block yields, in place of the statement that held it.
  void splice(Block body, const std::vector<ValueId>& results, Block& into) {
    for (Stmt& stmt : body.statements) into.statements.push_back(std::move(stmt));
    for (std::size_t i = 0; i < results.size(); ++i) values_[results[i]] = body.yields[i];
  }
  static void keep(decltype(Stmt::node) node, Position at, Block& into) {
    into.statements.push_back({std::move(node), at});
  }

  // --- statements ---
  template <class S>
  void statement(S s, Position at, Block& into) {
    keep(std::move(s), at, into);
  }
  void statement(StoreStmt s, Position at, Block& into) {
    replace(s.value);
    keep(std::move(s), at, into);
  }
  void statement(IndexStmt s, Position at, Block& into) {
    const DType type = k_.values[static_cast<std::size_t>(s.result)];
    if (!s.index.is_constant()) return keep(std::move(s), at, into);
    values_[s.result] = cast(Scalar::of(s.index.constant()), type);
  }
  void statement(DefStmt s, Position at, Block& into) {
    for (Arg& a : s.args) replace(a);
    if (const std::optional<Arg> folded = constant(s)) {
      values_[s.results[0]] = *folded;
    } else {
      keep(std::move(s), at, into);
    }
  }
  std::optional<Arg> constant(const DefStmt& s) const {
    const OpDef& row = op_def(s.op);
    if (s.results.size() != 1 || s.args.empty() || s.args.size() > 3) return std::nullopt;
    const DType type = k_.values[static_cast<std::size_t>(s.results[0])], from = dtype(s.args[0]);
    if (s.op == Op::cast && from == type) return s.args[0];
    if (s.op == Op::where && s.args[0].is_literal()) return s.args[s.args[0].literal.boolean() ? 1 : 2];
    for (const Arg& a : s.args)
      if (!a.is_literal()) return std::nullopt;
    if (s.op == Op::cast) return Arg(cast(s.args[0].literal, type));
    // Functions run as fragments, which are the target's; only exact ops are folded.
    const ScalarFn fn = direct_function(s.op, from);
    if (!fn || !row.fragment_f32.empty()) return std::nullopt;
    std::array<Word, 3> words{};
    for (std::size_t i = 0; i < s.args.size(); ++i) words[i] = s.args[i].literal.bits;
    return Arg(Scalar{type, fn(words[0], words[1], words[2])});
  }

  void statement(ForStmt s, Position at, Block& into) {
    bounds(s.low, true);
    bounds(s.high, false);
    const Facts facts(path_);
    const auto at_least = [&](std::int64_t extent) {  // is low + extent <= high proven?
      for (const Index& low : s.low)
        for (const Index& high : s.high)
          if (!facts.proves_non_negative(high - low - Index(extent))) return false;
      return true;
    };
    for (const Index& low : s.low)
      for (const Index& high : s.high)
        if (facts.proves_non_negative(low - high)) return empty(s);
    const bool serial = s.binding == Binding::none || s.binding == Binding::unroll;
    bool at_most_one = false;
    for (const Index& high : s.high) at_most_one = at_most_one || facts.proves_non_negative(s.low[0] + Index(1) - high);
    if (serial && s.low.size() == 1 && at_most_one && at_least(1) && once(s, into)) return;
    ranges_.enter(s);
    path_.push_back({&s, nullptr, false});
    s.body = block(std::move(s.body));
    path_.pop_back();
    keep(std::move(s), at, into);
  }
  // Leaves out the argument of max or min that the other one covers.
  void bounds(std::vector<Index>& list, bool largest) const {
    if (list.size() != 2) return;
    const Facts facts(path_);
    const Index difference = largest ? list[0] - list[1] : list[1] - list[0];
    if (facts.proves_non_negative(difference)) {
      list.pop_back();
    } else if (facts.proves_non_negative(difference * -1)) {
      list.erase(list.begin());
    }
  }
  // No iteration: a reduction is its identities.
  void empty(const ForStmt& s) {
    std::size_t next = 0;
    for (Combiner c : s.combiners)
      for (int i = 0; i < components(c); ++i, ++next) {
        const DType type = k_.values[static_cast<std::size_t>(s.results[next])];
        values_[s.results[next]] = identity(c, i, type);
      }
  }
  // One iteration, in place of the loop. comb(identity, x) is x but for add (0 + -0 = 0) and welford.
  bool once(ForStmt& s, Block& into) {
    for (Combiner c : s.combiners)
      if (c == Combiner::welford) return false;
    variables_[s.variable] = s.low[0];
    Block body = block(std::move(s.body));
    std::size_t next = 0;
    for (Combiner c : s.combiners) {
      Arg& yielded = body.yields[next];
      const DType type = k_.values[static_cast<std::size_t>(s.results[next])];
      if (c == Combiner::add && is_float(type)) {
        const auto sum = static_cast<ValueId>(k_.values.size());
        k_.values.push_back(type);
        const DefStmt def{{sum}, Op::add, {cast(Scalar::of(0.0), type), yielded}, {}};
        if (const std::optional<Arg> folded = constant(def)) {
          yielded = *folded;
        } else {
          keep(def, {}, body);
          yielded = Arg(sum);
        }
      }
      next += static_cast<std::size_t>(components(c));
    }
    splice(std::move(body), s.results, into);
    return true;
  }

  enum class Truth { no, yes, unknown };
  Truth truth(const Compare& c) const {
    const Facts facts(path_);
    const Index over = c.left - Index(c.right);  // < 0, >= 0 or == 0
    const bool non_negative = facts.proves_non_negative(over);
    const bool negative = !non_negative && facts.proves_non_negative(over * -1 - Index(1));
    if (c.kind == CompareKind::lt) return negative ? Truth::yes : non_negative ? Truth::no : Truth::unknown;
    if (c.kind == CompareKind::ge) return non_negative ? Truth::yes : negative ? Truth::no : Truth::unknown;
    if (negative || facts.proves_non_negative(over - Index(1))) return Truth::no;
    return non_negative && facts.proves_non_negative(over * -1) ? Truth::yes : Truth::unknown;
  }
  void statement(IfStmt s, Position at, Block& into) {
    Truth whole = s.condition >= 0 ? Truth::unknown : Truth::yes;
    if (s.condition >= 0) {
      Arg condition(s.condition);
      replace(condition);
      if (condition.is_literal()) {
        whole = condition.literal.boolean() ? Truth::yes : Truth::no;
      } else {
        s.condition = condition.value;
      }
    }
    std::vector<Compare> open;
    for (Compare& c : s.compares) {
      c.right -= c.left.constant();
      c.left = c.left - Index(c.left.constant());
      const Truth t = truth(c);
      if (t == Truth::no) whole = Truth::no;
      if (t == Truth::unknown) open.push_back(c);
    }
    if (whole == Truth::yes && !open.empty()) whole = Truth::unknown;
    // Two that never hold together: from what follows of both, anything could be proven of the block.
    IfStmt before;
    path_.push_back({nullptr, &before, false});
    for (std::size_t i = 0; i < open.size() && whole == Truth::unknown; ++i) {
      if (i > 0 && truth(open[i]) == Truth::no) whole = Truth::no;
      before.compares.push_back(open[i]);
    }
    path_.pop_back();
    if (whole != Truth::unknown)
      return splice(block(std::move(whole == Truth::yes ? s.then_block : s.else_block)), s.results, into);
    s.compares = std::move(open);
    path_.push_back({nullptr, &s, false});
    s.then_block = block(std::move(s.then_block));
    path_.back().in_else = true;
    s.else_block = block(std::move(s.else_block));
    path_.pop_back();
    keep(std::move(s), at, into);
  }

  Kernel& k_;
  VariableRanges ranges_;
  Path path_;
  std::map<ValueId, Arg> values_;
  std::map<VarId, Index> variables_;
};

}  // namespace

void fold(Kernel& kernel) { Folder(kernel).run(); }

Kernel simplify(const Kernel& kernel) {
  Kernel simple = kernel;
  fold(simple);
  drop_dead(simple);
  return renumbered(simple);
}

}  // namespace fusejit::ir
