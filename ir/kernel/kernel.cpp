// Small facts about kernels and their statements.
#include "ir/kernel/kernel.h"

#include <array>

#include "ir/kernel/walk.h"

namespace fusejit::ir {

std::int64_t Memory::elements() const {
  std::int64_t n = 1;
  for (std::int64_t d : dims) n *= d;
  return n;
}

std::int64_t blocks_that_fit(std::int64_t threads, int registers) {
  constexpr std::int64_t kRegisters = 65536, kWarp = 32;  // registers are given to whole warps
  return kRegisters / ((threads + kWarp - 1) / kWarp * kWarp * registers);
}

bool is_block_axis(Binding b) { return b == Binding::block_x || b == Binding::block_y || b == Binding::block_z; }
bool is_grid_axis(Binding b) { return b == Binding::grid_x || b == Binding::grid_y || b == Binding::grid_z; }

std::string_view name(Binding binding) {
  static constexpr std::array<std::string_view, 11> kNames = {
      "", "threads", "unroll", "vector", "tile", "grid.x", "grid.y", "grid.z", "block.x", "block.y", "block.z"};
  return kNames[static_cast<std::size_t>(binding)];
}

std::vector<ValueId> results(const Stmt& stmt) {
  return std::visit(
      Overloaded{[](const auto&) { return std::vector<ValueId>{}; }, [](const ForStmt& s) { return s.results; },
                 [](const IfStmt& s) { return s.results; }, [](const DefStmt& s) { return s.results; },
                 [](const LoadStmt& s) { return std::vector<ValueId>{s.result}; },
                 [](const IndexStmt& s) { return std::vector<ValueId>{s.result}; }},
      stmt.node);
}

void VariableRanges::enter(const ForStmt& loop) {
  const auto id = static_cast<std::size_t>(loop.variable);
  if (ranges_.size() <= id) ranges_.resize(id + 1);
  ranges_[id] = std::nullopt;
  std::optional<std::int64_t> low, high;
  for (const Index& index : loop.low)
    if (const auto range = index.interval(*this)) low = low ? std::max(*low, range->low) : range->low;
  for (const Index& index : loop.high)
    if (const auto range = index.interval(*this)) high = high ? std::min(*high, range->high) : range->high;
  if (low && high && *low < *high) ranges_[id] = Interval{*low, *high - 1};
}

std::optional<Interval> VariableRanges::of(const IndexAtom& atom) const {
  const auto id = static_cast<std::size_t>(atom.id);
  if (atom.kind != AtomKind::variable || id >= ranges_.size()) return std::nullopt;
  return ranges_[id];
}

bool operator==(const Kernel& a, const Kernel& b) { return print(a) == print(b); }

}  // namespace fusejit::ir
