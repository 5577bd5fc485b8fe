// The copies of a register tile: what each element of it is done for, and which of them ask whether they are inside.
#include <algorithm>

#include "scheduler/lower/nest/nest.h"
#include "scheduler/lower/split.h"

namespace fusejit::scheduler {

using ir::CompareKind;
using ir::Index;

// Every element of the tile, dims at its place; `active`: only those that this point adds to. `at` begins the index of
// its accumulators.
void Nest::over_tile(bool active, const std::function<void(std::vector<Index> at)>& body) {
  const std::function<void(std::size_t, std::vector<Index>)> over_dims = [&](std::size_t n, std::vector<Index> at) {
    if (n == tile_dims_.size()) return body(std::move(at));
    const int d = tile_dims_[n];
    const Range whole = range(d);
    const auto copy = [&](Index i) {
      std::vector<Index> deeper = at;
      deeper.push_back(i);
      with(d, {whole.base + i, 1, whole.limited, 1}, [&] { over_dims(n + 1, deeper); });
    };
    if (!active || !by_threads_) return unrolled(builder_, whole.size, copy);
    for (const auto& [begin, end] : alike(d)) builder_.loop(Index(begin), Index(end), ir::Binding::unroll, copy);
  };
  if (list_.empty()) return over_dims(0, {});
  const std::function<void(std::size_t, std::size_t)> set = [&](std::size_t i, std::size_t n) {
    if (n == list_dims_.size()) return over_dims(0, {Index(static_cast<std::int64_t>(i))});
    with(list_dims_[n], {Index(list_[i][n]), 1, false, 1}, [&] { set(i, n + 1); });
  };
  if (active) {
    for (const std::size_t i : active_) set(i, 0);
  } else {
    for (std::size_t i = 0; i < list_.size(); ++i) set(i, 0);
  }
}

// Copies of the tile along dim `d` in runs [begin, end): of those in the middle it is known that the first operand is
// inside, whatever the open loops are at; at an end each has a condition. A thread that asked before each load would
// wait for each, and NVRTC, which sees a remainder only, does not find out.
std::vector<std::pair<std::int64_t, std::int64_t>> Nest::alike(int d) {
  const Range whole = range(d);
  const auto known = [&](std::int64_t i) {
    bool inside = false;
    with(d, {whole.base + i, 1, whole.limited, 1}, [&] {
      bool never = false;
      const std::vector<ir::Compare> asked = conditions(never);
      inside = !never && std::all_of(asked.begin(), asked.end(), [&](const ir::Compare& c) {
        const auto value = c.left.interval([&](const ir::IndexAtom& atom) { return builder_.range(atom); });
        return value && (c.kind == CompareKind::lt ? value->high < c.right : value->low >= c.right);
      });
    });
    return inside;
  };
  std::vector<std::pair<std::int64_t, std::int64_t>> runs;
  bool before = false;
  for (std::int64_t i = 0; i < whole.size; ++i) {
    const bool now = known(i);
    if (runs.empty() || now != before) runs.emplace_back(i, i);
    runs.back().second = i + 1;
    before = now;
  }
  return runs;
}

}  // namespace fusejit::scheduler
