// Indices of the first operand that may leave it: an output dim and a tap make one index, in either role.
#include <algorithm>

#include "ir/base/check.h"
#include "scheduler/lower/nest/nest.h"
#include "scheduler/lower/nest/restore.h"
#include "scheduler/lower/tuning.h"

namespace fusejit::scheduler {

using ir::Binding;
using ir::Index;

namespace {

std::int64_t floor_quotient(std::int64_t n, std::int64_t by) { return n >= 0 ? n / by : -((-n + by - 1) / by); }

}  // namespace

// The marked logical dim of the first operand whose index this dim is in; -1: none.
int Nest::axis_with(const std::vector<bool>& mark, int d) const {
  for (std::size_t i = 0; i < mark.size(); ++i)
    if (mark[i] && c_.a.index[i].coefficient_of(d) != 0) return static_cast<int>(i);
  return -1;
}

// The other dim of that index.
int Nest::partner(int axis, int d) const {
  const std::vector<ir::DimSum::Term>& terms = c_.a.index[static_cast<std::size_t>(axis)].terms;
  FJ_ASSERT(terms.size() == 2, "an index that may leave its operand has {} dims in {}", terms.size(), str(c_));
  return terms[0].dim == d ? terms[1].dim : terms[0].dim;
}

bool Nest::held_in_list(int d) const {
  return !list_.empty() && std::find(list_dims_.begin(), list_dims_.end(), d) != list_dims_.end();
}

// Bounds for i, the dim being base + i, with everything else in the index known.
Nest::Clip Nest::clip(int axis, int d, const Range& of_dim) const {
  const auto a = static_cast<std::size_t>(axis);
  const std::int64_t by = c_.a.index[a].coefficient_of(d);
  FJ_ASSERT(by > 0, "a window runs backwards in {}", str(c_));
  const Index rest = evaluate(c_.a.index[a]) - at(d) * by;
  const auto divided = [&](const Index& index) { return by == 1 ? index : index / by; };
  return {divided(Index(by - 1) - rest) - of_dim.base,
          divided(Index(c_.a.extents[a] - 1) - rest) + Index(1) - of_dim.base};
}

// For all values of the dim from `low` to `high`, and all of its partner.
bool Nest::stays_inside(int axis, int d, std::int64_t low, std::int64_t high) const {
  const auto a = static_cast<std::size_t>(axis);
  const ir::DimSum& sum = c_.a.index[a];
  std::int64_t least = sum.constant, most = sum.constant;
  for (const ir::DimSum::Term& term : sum.terms) {
    const std::int64_t first = term.dim == d ? low : 0, last = term.dim == d ? high : dim(term.dim).extent - 1;
    least += std::min(term.coefficient * first, term.coefficient * last);
    most += std::max(term.coefficient * first, term.coefficient * last);
  }
  return least >= 0 && most < c_.a.extents[a];
}

void Nest::resolved(int axis, const std::function<void()>& body) {
  const auto a = static_cast<std::size_t>(axis);
  pending_[a] = false;
  body();
  pending_[a] = true;
}

// Between threads: once everything in an index is known, a condition keeps it inside.
void Nest::guard_known(const std::function<void()>& body) {
  if (!by_threads_ || !tile_open_) return body();
  for (std::size_t i = 0; i < pending_.size(); ++i) {
    const std::vector<ir::DimSum::Term>& terms = c_.a.index[i].terms;
    const bool known = pending_[i] && std::all_of(terms.begin(), terms.end(), [&](const ir::DimSum::Term& term) {
                         return term.dim != vector_ && range(term.dim).size == 1 && !held_in_list(term.dim);
                       });
    if (!known) continue;
    return builder_.when(within(evaluate(c_.a.index[i]), c_.a.extents[i]),
                         [&] { resolved(static_cast<int>(i), [&] { guard_known(body); }); });
  }
  body();
}

// Only the combinations with this value of a dim.
void Nest::with_active(const std::function<bool(const std::vector<std::int64_t>&)>& wanted,
                       const std::function<void()>& body) {
  const Restore active(active_);
  std::erase_if(active_, [&](std::size_t i) { return !wanted(list_[i]); });
  if (!active_.empty()) body();
}

// A sum over a dim whose partner is in registers, several values of it: where all of them stay inside there is nothing
// to ask. In the innermost loop the edges are copies, in others a condition chooses, and taps that read the same line
// have one condition together.
void Nest::over_edges(const Loop& loop, int axis, std::size_t next) {
  const int d = loop.dim, tap = partner(axis, d);
  const auto a = static_cast<std::size_t>(axis);
  const auto slot = static_cast<std::size_t>(std::find(list_dims_.begin(), list_dims_.end(), tap) - list_dims_.begin());
  const std::int64_t by = c_.a.index[a].coefficient_of(d), tap_by = c_.a.index[a].coefficient_of(tap),
                     constant = c_.a.index[a].constant, extent = c_.a.extents[a];
  FJ_ASSERT(by > 0 && tap_by > 0, "a window runs backwards in {}", str(c_));
  std::int64_t first = list_[active_.front()][slot], last = first;
  for (const std::size_t i : active_) first = std::min(first, list_[i][slot]), last = std::max(last, list_[i][slot]);
  const Range of_dim = range(d);
  const auto all_inside = [&](const Index& value) {
    resolved(axis, [&] { with(d, {value, 1, false, 1}, [&] { walk(next); }); });
  };

  if (next == stages_.size() && of_dim.base.is_constant() && !of_dim.limited) {
    const std::int64_t start = of_dim.base.constant(), stop = start + of_dim.size;
    // Values v with 0 <= by * v + tap_by * tap + constant < extent for every tap.
    const std::int64_t begin = std::clamp(-floor_quotient(constant + tap_by * first, by), start, stop);
    const std::int64_t end = std::clamp(floor_quotient(extent - 1 - constant - tap_by * last, by) + 1, begin, stop);
    if (of_dim.size - (end - begin) <= tuning::kMostEdgeCopies) {
      const auto copy = [&](std::int64_t v) {
        with_active(
            [&](const std::vector<std::int64_t>& values) {
              const std::int64_t index = by * v + tap_by * values[slot] + constant;
              return index >= 0 && index < extent;
            },
            [&] { all_inside(Index(v)); });
      };
      for (std::int64_t v = start; v < begin; ++v) copy(v);
      if (end > begin) builder_.loop(Index(begin), Index(end), Binding::none, all_inside);
      for (std::int64_t v = end; v < stop; ++v) copy(v);
      return;
    }
  }
  std::vector<Index> high{Index(of_dim.size)};
  if (of_dim.limited) high.push_back(Index(dim(d).extent) - of_dim.base);
  emit_loop({Index(0)}, high, Binding::none, [&](Index i) {
    const Index value = of_dim.base + i;
    const auto position = [&](std::int64_t of_tap) { return value * by + Index(tap_by * of_tap + constant); };
    const auto by_tap = [&] {
      for (std::int64_t t = first; t <= last; ++t) {
        with_active([&](const std::vector<std::int64_t>& values) { return values[slot] == t; },
                    [&] { builder_.when(within(position(t), extent), [&] { all_inside(value); }); });
      }
    };
    if (first == last) return by_tap();
    std::vector<ir::Compare> inside = within(position(first), extent);
    for (const ir::Compare& c : within(position(last), extent)) inside.push_back(c);
    builder_.when(
        inside, [&] { all_inside(value); }, by_tap);
  });
}

}  // namespace fusejit::scheduler
