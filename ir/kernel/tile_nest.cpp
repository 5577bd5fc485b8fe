#include "ir/kernel/tile_nest.h"

#include <span>
#include <utility>

namespace fusejit::ir {
namespace {

using Statements = std::span<const Stmt>;

// Reads statements of a block in order; any mismatch makes all further ones fail.
class NestReader {
 public:
  explicit NestReader(Statements statements) : statements_(statements) {}

  template <class S>
  const S* next() {
    const S* found = matches_ && at_ < statements_.size() ? std::get_if<S>(&statements_[at_++].node) : nullptr;
    matches_ = found != nullptr;
    return found;
  }
  MemId local() {
    const auto* local = next<LocalStmt>();
    return local ? local->memory : -1;
  }
  const LoadStmt* load_of(MemId memory) {
    const auto* load = next<LoadStmt>();
    require(load && load->place.memory == memory && load->place.index.empty());
    return load;
  }
  ValueId def(Op op, const std::vector<Arg>& args) {
    const auto* def = next<DefStmt>();
    require(def && def->op == op && def->args == args && def->results.size() == 1);
    return matches_ ? def->results[0] : -1;
  }
  void store_to(MemId memory, ValueId value) {
    const auto* store = next<StoreStmt>();
    require(store && store->place.memory == memory && store->place.index.empty() && store->value == Arg(value));
  }
  void require(bool holds) { matches_ = matches_ && holds; }
  bool holds() const { return matches_; }
  bool ends() const { return matches_ && at_ == statements_.size(); }

 private:
  const Statements statements_;
  std::size_t at_ = 0;
  bool matches_ = true;
};

// A serial loop of known turns, or one of tiles.
bool counts_from_zero(const ForStmt& loop, Binding binding = Binding::none) {
  return loop.binding == binding && loop.results.empty() && loop.low.size() == 1 && loop.high.size() == 1 &&
         loop.low[0] == Index(0) && loop.high[0].is_constant() && loop.high[0].constant() > 0;
}

// The chains of one turn, in the innermost loop over terms.
bool read_pairs(Statements statements, MemId sum, TileNest& nest) {
  NestReader turn(statements);
  const MemId even = turn.local(), odd = turn.local();
  nest.pairs = turn.next<ForStmt>();
  if (!turn.holds() || !counts_from_zero(*nest.pairs)) return false;
  NestReader pair(nest.pairs->body.statements);
  const auto *a = pair.next<LoadStmt>(), *b = pair.next<LoadStmt>();
  for (const auto& [chain, op] : {std::pair{even, Op::fma_low}, std::pair{odd, Op::fma_high}}) {
    const LoadStmt* before = pair.load_of(chain);
    if (!pair.holds()) return false;
    pair.store_to(chain, pair.def(op, {a->result, b->result, before->result}));
  }
  if (!pair.ends()) return false;
  nest.a = &a->place, nest.b = &b->place;
  const LoadStmt *of_even = turn.load_of(even), *of_odd = turn.load_of(odd);
  if (!turn.holds()) return false;
  const ValueId both = turn.def(Op::add_flushed, {of_even->result, of_odd->result});
  const LoadStmt* before = turn.load_of(sum);
  if (!turn.holds()) return false;
  turn.store_to(sum, turn.def(Op::add_flushed, {before->result, both}));
  return turn.ends();
}

bool read_terms(Statements statements, MemId sum, TileNest& nest) {
  const auto* loop = statements.size() == 1 ? std::get_if<ForStmt>(&statements[0].node) : nullptr;
  if (!loop) return read_pairs(statements, sum, nest);
  if (!counts_from_zero(*loop)) return false;
  nest.terms.push_back(loop);
  return read_terms(loop->body.statements, sum, nest);
}

}  // namespace

std::optional<TileNest> tile_nest(const ForStmt& loop) {
  TileNest nest{&loop, nullptr, nullptr, {}, nullptr, nullptr, nullptr};
  if (!counts_from_zero(loop, Binding::tile)) return std::nullopt;
  NestReader row(loop.body.statements);
  nest.columns = row.next<ForStmt>();
  if (!row.ends() || !counts_from_zero(*nest.columns)) return std::nullopt;
  const Statements element = nest.columns->body.statements;
  if (element.size() < 4) return std::nullopt;
  NestReader first(element), last(element.last(2));
  const MemId sum = first.local();
  const LoadStmt* load = last.load_of(sum);
  const auto* store = last.next<StoreStmt>();
  if (!first.holds() || !last.ends() || !(store->value == Arg(load->result))) return std::nullopt;
  nest.sums = &store->place;
  if (!read_terms(element.subspan(1, element.size() - 3), sum, nest)) return std::nullopt;
  return nest;
}

namespace {

Index flat(const Kernel& kernel, const Place& place) {
  const Memory& memory = kernel.memories[static_cast<std::size_t>(place.memory)];
  Index sum;
  for (std::size_t d = 0; d < memory.dims.size(); ++d) sum = sum * memory.dims[d] + place.index[d];
  return sum;
}

// From each row to the next; empty: one is no constant.
std::vector<std::int64_t> steps_of_rows(const Index& index, const ForStmt& rows) {
  const auto at = [&](std::int64_t row) {
    return index.substitute([&](const IndexAtom& leaf) -> std::optional<Index> {
      if (leaf.kind != AtomKind::variable || leaf.id != rows.variable) return std::nullopt;
      return Index(row);
    });
  };
  std::vector<std::int64_t> steps;
  Index before = at(0);
  for (std::int64_t row = 1; row < rows.high[0].constant(); ++row) {
    const Index here = at(row), step = here - before;
    if (!step.is_constant()) return {};
    steps.push_back(step.constant());
    before = here;
  }
  return steps;
}

// The variable's coefficient, where it stands nowhere else in the index.
std::optional<std::int64_t> step_of(const Index& index, VarId variable) {
  const std::int64_t step = index.coefficient_of(variable);
  if ((index - Index::variable(variable) * step).mentions(variable)) return std::nullopt;
  return step;
}

}  // namespace

std::string refused_by_matrix_unit(const Kernel& kernel, const TileNest& nest) {
  const auto memory = [&](const Place* place) { return kernel.memories[static_cast<std::size_t>(place->memory)]; };
  const std::int64_t columns = nest.columns->high[0].constant(), pairs = nest.pairs->high[0].constant();
  if (columns % kTileColumns != 0) return fmt::format("{} columns are not whole tiles of {}", columns, kTileColumns);
  if (pairs > kTilePairs) return fmt::format("{} pairs are more than {}", pairs, kTilePairs);
  if (memory(nest.a).dtype != DType::u32 || memory(nest.b).dtype != DType::u32) return "its factors are words of u32";
  if (memory(nest.sums).dtype != DType::f32 || memory(nest.sums).kind == MemKind::register_local)
    return "its sums are stored to memory of f32";
  struct Rule {
    const Place* place;
    const ForStmt* loop;
    std::optional<std::int64_t> step;  // nothing: any
    const char* what;
  };
  const Rule rules[] = {{nest.a, nest.columns, 0, "the first factor names a column"},
                        {nest.a, nest.pairs, 1, "pairs of the first factor do not lie side by side"},
                        {nest.b, nest.rows, 0, "the second factor names a row"},
                        {nest.b, nest.columns, 1, "columns of the second factor do not lie side by side"},
                        {nest.b, nest.pairs, std::nullopt, "pairs of the second factor have no step"},
                        {nest.sums, nest.columns, 1, "columns of sums do not lie side by side"}};
  for (const Rule& rule : rules) {
    const std::optional<std::int64_t> step = step_of(flat(kernel, *rule.place), rule.loop->variable);
    if (!step || (rule.step && *step != *rule.step)) return rule.what;
  }
  return rows_of_tiles(kernel, nest) ? "" : "rows of the first factor or of the sums have no step";
}

std::optional<TileRows> rows_of_tiles(const Kernel& kernel, const TileNest& nest) {
  const std::int64_t rows = nest.rows->high[0].constant();
  if (rows == 1) return TileRows{1, 0, 0};
  const std::vector<std::int64_t> a = steps_of_rows(flat(kernel, *nest.a), *nest.rows),
                                  sums = steps_of_rows(flat(kernel, *nest.sums), *nest.rows);
  if (a.empty() || sums.empty()) return std::nullopt;
  const auto is_other = [&](std::size_t i) { return a[i] != a[0] || sums[i] != sums[0]; };
  std::size_t run = 1;  // rows
  while (run < a.size() + 1 && !is_other(run - 1)) ++run;
  for (std::size_t i = 0; i < a.size(); ++i)
    if ((i + 1) % run != 0 && is_other(i)) return std::nullopt;
  if (rows % static_cast<std::int64_t>(run) != 0) return std::nullopt;
  return TileRows{static_cast<std::int64_t>(run), a[0], sums[0]};
}

void write_tile_nest(KernelBuilder& builder, const TileProduct& p) {
  builder.loop(Index(0), Index(p.rows), Binding::tile, [&](Index row) {
    builder.loop(Index(0), Index(p.columns), Binding::none, [&](Index column) {
      const MemId sum = builder.local(MemKind::register_local, DType::f32, {}, 0);
      const auto turn = [&](const std::vector<Index>& at) {
        const MemId even = builder.local(MemKind::register_local, DType::f32, {}, 0),
                    odd = builder.local(MemKind::register_local, DType::f32, {}, 0);
        builder.loop(Index(0), Index(p.pairs), Binding::none, [&](Index pair) {
          const Arg a = builder.load(p.a, p.place_of_a(row, at, pair)),
                    b = builder.load(p.b, p.place_of_b(at, pair, column));
          for (const auto& [chain, op] : {std::pair{even, Op::fma_low}, std::pair{odd, Op::fma_high}})
            builder.store(chain, {}, builder.def(op, {a, b, builder.load(chain, {})}, DType::f32));
        });
        const Arg of_even = builder.load(even, {}), of_odd = builder.load(odd, {});
        const Arg both = builder.def(Op::add_flushed, {of_even, of_odd}, DType::f32);
        const Arg before = builder.load(sum, {});
        builder.store(sum, {}, builder.def(Op::add_flushed, {before, both}, DType::f32));
      };
      const std::function<void(std::vector<Index>)> over_terms = [&](std::vector<Index> at) {
        if (at.size() == p.terms.size()) return turn(at);
        builder.loop(Index(0), Index(p.terms[at.size()]), Binding::none, [&](Index i) {
          std::vector<Index> deeper = at;
          deeper.push_back(i);
          over_terms(std::move(deeper));
        });
      };
      over_terms({});
      builder.store(p.sums, p.place_of_sum(row, column), builder.load(sum, {}));
    });
  });
}

}  // namespace fusejit::ir
