// Panels: copies in scratch of what a part of the nest reads of an operand. Padding is there as zeros, so that no
// window leaves a panel; steps over elements that nothing reads are left out; rows of channels do not all begin in a
// few sets of the cache, as rows of a power of two do.
#include <algorithm>

#include "ir/base/check.h"
#include "scheduler/lower/cuda/threads.h"
#include "scheduler/lower/nest/factor.h"
#include "scheduler/lower/nest/nest.h"
#include "scheduler/lower/nest/restore.h"
#include "scheduler/lower/split.h"
#include "scheduler/lower/tuning.h"

namespace fusejit::scheduler {

using ir::Arg;
using ir::Binding;
using ir::Index;
using ir::KernelBuilder;

namespace {

constexpr std::int64_t kBytesOfLine = 64;  // of cache

}  // namespace

// Whole blocks of lanes, as they are read.
std::int64_t Nest::size_in_panel(int d) const {
  const std::int64_t size = range(d).size;
  return d == vector_ ? ir::ceil_divide<std::int64_t>(size, s_.block()) * s_.block() : size;
}

// What there is to be copied.
void Nest::measure(Panel& panel) const {
  panel.axes.clear();
  for (std::size_t i = 0; i < panel.of->index.size(); ++i) {
    const ir::DimSum& sum = panel.of->index[i];
    Panel::Axis axis;
    axis.low = sum.constant;
    axis.may_leave = panel.of->may_leave(static_cast<int>(i), dims_);
    const ir::DimSum::Term* only = nullptr;
    int free = 0;
    for (const ir::DimSum::Term& term : sum.terms) {
      const Range& of_dim = range(term.dim);
      const std::int64_t size = size_in_panel(term.dim), last = (size - 1) * term.coefficient;
      axis.low = axis.low + of_dim.base * term.coefficient + Index(std::min<std::int64_t>(last, 0));
      axis.extent += std::abs(last);
      axis.may_leave |= of_dim.limited || size > of_dim.size || size > dim(term.dim).extent;
      if (size > 1) only = &term, ++free;
    }
    if (free == 1) {
      const std::int64_t at_once = terms_at_once(only->dim);
      axis.step = std::abs(only->coefficient) * at_once;
      axis.extent = ir::ceil_divide(size_in_panel(only->dim), at_once);
    } else if (is_paired(*panel.of, i)) {  // of a window that moves by whole pairs
      axis.step = 2;
      axis.extent = ir::ceil_divide<std::int64_t>(axis.extent, 2);
    }
    panel.axes.push_back(axis);
  }
  panel.order = physical_order(kernel_.graph().value(panel.value).type());
  if (s_.matrix > 0) order_for_matrix_unit(panel);
  panel.tile_axis = -1;
  for (std::size_t i = 0; &panel == &panel_a_ && s_.tiles_a && i < panel.of->index.size(); ++i)
    if (panel.of->index[i].coefficient_of(tile_dims_[0]) != 0)
      panel.tile_axis = static_cast<int>(i), panel.tile = held(tile_dims_[0]);
}

// In memory; coordinates by logical dim.
std::vector<Index> Nest::place_in(const Panel& panel, const std::vector<Index>& at) const {
  if (merges_words()) return merged_place(panel, at);
  std::vector<Index> place;
  if (panel.tile_axis >= 0) place.push_back(at[static_cast<std::size_t>(panel.tile_axis)] / panel.tile);
  for (const int d : panel.order)
    if (d != panel.tile_axis) place.push_back(at[static_cast<std::size_t>(d)]);
  if (panel.tile_axis >= 0) place.push_back(at[static_cast<std::size_t>(panel.tile_axis)] % panel.tile);
  return place;
}

// Neighbouring elements along this logical dim are one factor.
bool Nest::is_paired(const ir::ContractionOperand& operand, std::size_t axis) const {
  return dot_ >= 0 && operand.index[axis].coefficient_of(dot_) != 0;
}

bool Nest::computes(const Panel& panel) const { return !kernel_.comes_from_memory(panel.value); }

// What it computes is stored as well.
bool Nest::stores(const Panel& panel) const { return &panel == &panel_a_ && !kernel_.group().copies.empty(); }

// Of its memory: whole vectors of a row, an odd number of them unless they are few, or tiles.
std::vector<std::int64_t> Nest::dims_of(const Panel& panel) const {
  if (merges_words()) return merged_dims(panel);
  std::vector<std::int64_t> dims;
  const auto extent = [&](int d) { return panel.axes[static_cast<std::size_t>(d)].extent; };
  if (panel.tile_axis >= 0) dims.push_back(ir::ceil_divide(extent(panel.tile_axis), panel.tile));
  for (const int d : panel.order)
    if (d != panel.tile_axis) dims.push_back(extent(d));
  if (panel.order.back() != panel.tile_axis) {
    std::int64_t& row = dims.back();
    row = ir::ceil_divide<std::int64_t>(row, s_.lanes) * s_.lanes;
    const std::int64_t vectors = row / s_.lanes;
    if (vectors > 2 && vectors % 2 == 0) row += s_.lanes;
  }
  if (panel.tile_axis >= 0) dims.push_back(panel.tile);
  return dims;
}

// The copy, and what reads it.
void Nest::in_panel(Panel& panel, std::size_t next) {
  measure(panel);
  panel.memory = builder_.local(ir::MemKind::scratch_local, factor_, dims_of(panel));
  plan_fetch_of_next(panel, next);
  if (&panel == &panel_a_ && s_.tiles_a && s_.panel_b.empty()) {  // read as it is, and fetched like a panel
    measure(panel_b_);
    plan_fetch_of_next(panel_b_, next);
  }
  if (&panel == &panel_a_) plan_fetch_of_panel(next);
  fill(panel);
  if (merges_pairs() && &panel == &panel_a_) turn(panel);
  const Restore pending(pending_), zeros(zeros_);
  if (&panel == &panel_a_) skip_padding();
  walk(next);
  panel.memory = -1;
  panel.fetched_at = 0;
  if (&panel == &panel_a_) panel_b_.fetched_at = 0;
}

// Padding is there as zeros: nothing must keep an index inside, but loops pass over products with them where they can.
void Nest::skip_padding() {
  for (std::size_t i = 0; i < pending_.size(); ++i) {
    zeros_[i] = pending_[i] && !has_edges_alone(static_cast<int>(i));
    if (zeros_[i]) pending_[i] = false;
  }
}

// Every tile in the registers is one at an edge. So they are written as copies, which leave out products with padding,
// and no tile of the inside that could do without its zeros is among them.
bool Nest::has_edges_alone(int axis) const {
  if (s_.matrix > 0) return false;                                    // all taps are rows of one operand
  if (s_.accumulators() > tuning::kFewAccumulators) return false;     // copies would spill
  if (is_paired(c_.a, static_cast<std::size_t>(axis))) return false;  // half a pair may be padding
  for (const ir::DimSum::Term& term : c_.a.index[static_cast<std::size_t>(axis)].terms) {
    const Range& all = range(term.dim);
    const auto loops = std::count_if(stages_.begin(), stages_.end(), [&](const Stage& stage) {
      return stage.kind == Kind::loop && stage.loop.dim == term.dim;
    });
    if (std::find(tile_dims_.begin(), tile_dims_.end(), term.dim) != tile_dims_.end())
      return loops == 1 && all.base.is_constant() && !all.limited && all.size <= 2 * held(term.dim);
  }
  return false;
}

// Elements of one of a panel's dims: those inside of the operand, and those beside it, which are zeros. Each has a loop
// of its own; a condition for every element would stand in the way of the copy.
void Nest::over_axis(const Panel& panel, std::size_t d, const std::function<void(const Index& i, bool inside)>& body) {
  const Panel::Axis& axis = panel.axes[d];
  const Index extent(axis.extent);
  const auto over = [&](std::vector<Index> low, std::vector<Index> high, bool inside) {
    emit_loop(std::move(low), std::move(high), Binding::none, [&](const Index& i) { body(i, inside); });
  };
  if (!axis.may_leave) return over({Index(0)}, {extent}, true);
  // 0 <= low + i * step < the operand's extent, or half of a pair is
  const auto first_at_least = [&](std::int64_t bound) { return (Index(bound + axis.step - 1) - axis.low) / axis.step; };
  const Index first = first_at_least(is_paired(*panel.of, d) ? -1 : 0), end = first_at_least(panel.of->extents[d]);
  over({Index(0)}, {extent, first}, false);
  over({Index(0), first}, {extent, end}, true);
  over({Index(0), end}, {extent}, false);
}

// Where it is computed, a few vectors of each row after another: what belongs to a channel, such as its mean, stays in
// registers while pixels pass by. Not where it is stored too: whole rows go to memory one after the other.
void Nest::fill(Panel& panel) {
  const std::int64_t vectors =
      ir::ceil_divide(panel.axes[static_cast<std::size_t>(panel.order.back())].extent, s_.lanes);
  panel.vectors = vectors;
  if (computes(panel) && !stores(panel) && vectors <= tuning::kMostVectorsInRuns)
    for (std::int64_t n = 2; n <= tuning::kMostVectorsOfRun; n *= 2)
      if (vectors % n == 0) panel.vectors = n;
  std::vector<Index> at(panel.axes.size(), Index(0));
  if (panel.tile_axis >= 0 || s_.merges_taps()) panel.vectors = vectors;
  if (panel.vectors == vectors) return fill(panel, 0, at, false);
  emit_loop({Index(0)}, {Index(vectors / panel.vectors)}, Binding::none, [&](const Index& run) {
    panel.first = run * panel.vectors;
    fill(panel, 0, at, false);
  });
  panel.first = 0;
}

// Coordinates of the dims before the n-th are in `at`; `zero`: one of them is outside of the operand.
void Nest::fill(const Panel& panel, std::size_t n, std::vector<Index>& at, bool zero) {
  const auto d = static_cast<std::size_t>(panel.order[n]);
  const Panel::Axis& axis = panel.axes[d];
  if (s_.merges_taps() && n + 2 == panel.order.size()) return fill_merged_row(panel, at, zero);
  if (n + 1 < panel.order.size()) {
    const auto deeper = [&](const Index& i, bool inside) {
      at[d] = i;
      fill(panel, n + 1, at, !inside);
    };
    if (!zero) return over_axis(panel, d, deeper);
    return emit_loop({Index(0)}, {Index(axis.extent)}, Binding::none, [&](const Index& i) { deeper(i, false); });
  }
  if (!zero) fetch_for_panel(panel, d, at);
  if (static_cast<int>(d) == panel.tile_axis) return fill_tiles(panel, at, zero);
  const std::int64_t lanes = s_.lanes, rest = axis.extent % lanes;
  const Binding side_by_side =
      panel.vectors <= tuning::kMostVectorsOfRun && computes(panel) ? Binding::unroll : Binding::none;
  emit_loop({Index(0)}, {Index(panel.vectors)}, side_by_side, [&](const Index& vector) {
    builder_.loop(Index(0), Index(lanes), Binding::vector, [&](const Index& lane) {
      at[d] = (panel.first + vector) * lanes + lane;
      std::vector<ir::Compare> there;
      if (rest > 0) there.push_back(compare(at[d], ir::CompareKind::lt, axis.extent));
      if (axis.may_leave && !is_paired(*panel.of, d))
        for (const ir::Compare& c : within(axis.low + at[d] * axis.step, panel.of->extents[d])) there.push_back(c);
      if (!zero && stores(panel)) return copy_and_store(there, panel, at);
      builder_.store(panel.memory, place_in(panel, at), zero ? zero_factor() : copied_where(there, panel, at));
    });
  });
}

// Once an element, where the conditions hold: beside the others the panel stays as it is, and nothing reads it. What is
// multiplied is what others will read, rounded as it is stored.
void Nest::copy_and_store(const std::vector<ir::Compare>& there, const Panel& panel, const std::vector<Index>& at) {
  const Index& row = panel.axes[static_cast<std::size_t>(panel.order.back())].low;
  const bool whole = there.empty() && row.is_constant() && row.constant() % s_.lanes == 0;
  const auto both = [&] {
    kernel_.expression().nested([&] {
      const LogicalIndex index = index_at(panel, at);
      Expression& expression = kernel_.expression();
      builder_.store(panel.memory, place_in(panel, at),
                     expression.rounded(expression.value(panel.value, index), panel.of->dtype));
      kernel_.store_copies(index, whole ? Vectors::whole : Vectors::some);
    });
  };
  there.empty() ? both() : builder_.when(there, both);
}

Arg Nest::zero_factor() const { return KernelBuilder::literal(0, factor_); }

// Zero where one of the conditions does not hold.
Arg Nest::copied_where(const std::vector<ir::Compare>& there, const Panel& panel, const std::vector<Index>& at) {
  return value_or_zero(builder_, there, factor_, [&] { return copied(panel, at); });
}

// Elements that lie side by side in the operand, and in the panel as many of them as a tile reads.
void Nest::fill_tiles(const Panel& panel, std::vector<Index>& at, bool zero) {
  const auto d = static_cast<std::size_t>(panel.tile_axis);
  const Panel::Axis& axis = panel.axes[d];
  const std::int64_t lanes = s_.lanes, rest = axis.extent % panel.tile;
  const auto tile = [&](const Index& t, std::int64_t size) {
    unrolled(builder_, ir::ceil_divide(size, lanes), [&](Index vector) {
      builder_.loop(Index(0), Index(lanes), Binding::vector, [&](const Index& lane) {
        const Index in_tile = vector * lanes + lane;
        at[d] = t * panel.tile + in_tile;
        const auto store = [&] {
          const std::vector<ir::Compare> there =
              axis.may_leave ? within(axis.low + at[d], panel.of->extents[d]) : std::vector<ir::Compare>();
          std::vector<Index> place = place_in(panel, at);
          place.front() = t,
          place.back() = in_tile;  // lanes beyond the tile, which store nothing, hide that it is this
          builder_.store(panel.memory, place, zero ? zero_factor() : copied_where(there, panel, at));
        };
        size % lanes == 0 ? store() : builder_.when({compare(in_tile, ir::CompareKind::lt, size)}, store);
      });
    });
  };
  emit_loop({Index(0)}, {Index(axis.extent / panel.tile)}, Binding::none, [&](const Index& t) { tile(t, panel.tile); });
  if (rest > 0) tile(Index(axis.extent / panel.tile), rest);
}

// The lines along a row that the copy reads so much further along another dim: the next row of an image may be in
// another page, which no processor foresees.
void Nest::fetch_for_panel(const Panel& panel, std::size_t row, std::vector<Index>& at) {
  const Panel& fetched = s_.panel_a.empty() ? panel_b_ : panel_a_;
  if (s_.fetch.dims.empty() || &panel != &fetched || products_fetch() || ahead_.stage > 0) return;
  const int along = c_.find(s_.fetch.dims[0]);
  const std::vector<ir::DimSum>& index = panel.of->index;
  if (std::none_of(index.begin(), index.end(), [&](const auto& sum) { return sum.coefficient_of(along) != 0; })) return;
  const std::int64_t line = 64 / bytes(panel.of->dtype);
  const std::int64_t elements = std::min(panel.axes[row].extent, panel.vectors * s_.lanes);
  emit_loop({Index(0)}, {Index(ir::ceil_divide(elements, line))}, Binding::none, [&](const Index& i) {
    at[row] = panel.first * s_.lanes + i * line;
    LogicalIndex further;
    for (std::size_t n = 0; n < at.size(); ++n)
      further.push_back(panel.axes[n].low + at[n] * panel.axes[n].step +
                        Index(index[n].coefficient_of(along) * s_.fetch.count));
    kernel_.prefetch(panel.value, further);
  });
}

// That a panel has along a logical dim, padding included.
std::int64_t Nest::elements_of(const Panel& panel, std::size_t d) const {
  return panel.axes[d].extent * (is_paired(*panel.of, d) ? 2 : 1);
}

// All of the operand's are among them.
bool Nest::is_whole(const Panel& panel, std::size_t d) const { return elements_of(panel, d) >= panel.of->extents[d]; }

// The turn at hand of all loops of these stages together.
Index Nest::turn_of(std::size_t first, std::size_t end, std::int64_t& turns) const {
  Index turn = 0;
  turns = 1;
  for (std::size_t i = first; i < end; ++i) {
    if (stages_[i].kind != Kind::loop) continue;
    const Loop& loop = stages_[i].loop;
    const std::int64_t count = ir::ceil_divide(range_size(loop), loop.step);
    turn = turn * count + range(loop.dim).base / loop.step % count, turns *= count;
  }
  return turn;
}

// What a panel is copied from, outermost first: dims that follow each other in memory are one run, the last of lines of
// cache. Padding is none of it.
std::vector<Nest::Run> Nest::runs_of(const Panel& panel) const {
  std::vector<Run> runs;
  bool goes_on = false;  // the run so far is all of the dims inside of this one
  for (std::size_t i = panel.order.size(); i-- > 0;) {
    const auto d = static_cast<std::size_t>(panel.order[i]);
    const std::int64_t step = is_paired(*panel.of, d) ? 1 : panel.axes[d].step,
                       count = std::min(elements_of(panel, d), ir::ceil_divide(panel.of->extents[d], step));
    if (goes_on && step == 1) {
      runs.front().count *= count;
    } else {
      runs.insert(runs.begin(), {d, count, step});
    }
    goes_on = is_whole(panel, d);
  }
  const std::int64_t line = kBytesOfLine / bytes(panel.of->dtype);
  runs.back() = {runs.back().axis, ir::ceil_divide(runs.back().count, line), line};
  return runs;
}

// What the next panel is copied from is fetched while this one is read, a share of the lines in each turn of the loops
// inside of it: those down to a tile, or, where that would be a burst, down to one that has turns enough.
void Nest::plan_fetch_of_next(Panel& panel, std::size_t inside) const {
  panel.inside = inside, panel.fetched_at = 0;
  if (!products_fetch() || (&panel == &panel_a_ && !s_.tiles_a)) return;
  std::int64_t lines = 1, turns = 1;
  for (const Run& run : runs_of(panel)) lines *= run.count;
  for (std::size_t i = panel.inside; i < stages_.size() && panel.fetched_at == 0; ++i) {
    if (stages_[i].kind == Kind::tile && lines <= turns * tuning::kMostLinesOfTile) panel.fetched_at = i;
    if (stages_[i].kind == Kind::loop) turns *= ir::ceil_divide(range_size(stages_[i].loop), stages_[i].loop.step);
  }
  if (panel.fetched_at == 0) panel.fetched_at = stages_.size();
}

void Nest::fetch_next(const Panel& panel) {
  const std::vector<Run> runs = runs_of(panel);
  std::vector<std::int64_t> counts;
  std::int64_t lines = 1, turns = 0;
  for (const Run& run : runs) counts.push_back(run.count), lines *= run.count;
  const Index turn = turn_of(panel.inside, panel.fetched_at, turns);
  const std::int64_t share = ir::ceil_divide(lines, turns);
  const int along = c_.find(s_.fetch.dims[0]);
  unrolled(builder_, share, [&](Index n) {
    // A few lines more than there are do no harm.
    const Index line = turn * share + n;
    const std::vector<Index> at = cuda::decode(share * turns > lines + lines / 8 ? line % lines : line, counts);
    LogicalIndex further;
    for (std::size_t d = 0; d < panel.axes.size(); ++d) {
      further.push_back((is_whole(panel, d) ? Index(0) : panel.axes[d].low) +
                        Index(panel.of->index[d].coefficient_of(along) * s_.fetch.count));
    }
    for (std::size_t i = 0; i < runs.size(); ++i) further[runs[i].axis] = further[runs[i].axis] + at[i] * runs[i].step;
    kernel_.prefetch(panel.value, further, ir::PrefetchKind::l2);
  });
}

// What the next task's panel of the first operand is copied from, while this task's products are added up: by the
// outermost loops over terms that have a turn for every line. Copied from memory at once, a panel would take as long as
// memory does while no product is computed. Its rows lie one after the other, and so do the turns' pieces: an index of
// several digits would cost registers that the tile needs.
void Nest::plan_fetch_of_panel(std::size_t first) {
  ahead_ = {};
  const auto sums =
      std::count_if(c_.dims.begin(), c_.dims.end(), [](const auto& d) { return d.reduced && d.extent > 1; });
  if (!fetches_runs() || c_.terms() == 0 || sums > 1) return;  // beside several taps a copy is little
  const int along = c_.find(s_.fetch.dims[0]);
  std::size_t row = 0;  // of the panel's order: the dim that tasks cut
  const auto moves = [&](std::size_t i) {
    return panel_a_.of->index[static_cast<std::size_t>(panel_a_.order[i])].coefficient_of(along) != 0;
  };
  while (row < panel_a_.order.size() && !moves(row)) ++row;
  if (row + 1 >= panel_a_.order.size()) return;
  const auto& rows = panel_a_.axes[static_cast<std::size_t>(panel_a_.order[row])];
  std::int64_t elements = rows.extent * rows.step;
  for (std::size_t i = row + 1; i < panel_a_.order.size(); ++i) {
    const auto d = static_cast<std::size_t>(panel_a_.order[i]);
    if (panel_a_.axes[d].extent * panel_a_.axes[d].step < panel_a_.of->extents[d]) return;
    elements *= panel_a_.of->extents[d];
  }
  const std::int64_t line = kBytesOfLine / bytes(panel_a_.of->dtype);
  ahead_.row = row, ahead_.first = first;
  std::int64_t turns = 1;
  for (std::size_t i = first; i < stages_.size(); ++i) {
    if (stages_[i].kind != Kind::loop) continue;
    const bool term = dim(stages_[i].loop.dim).reduced;
    if (term && turns * line * kMostLinesOfTurn >= elements) break;
    turns *= ir::ceil_divide(range_size(stages_[i].loop), stages_[i].loop.step);
    if (term) ahead_.stage = i + 1;
  }
  ahead_.elements = ir::ceil_divide<std::int64_t>(ir::ceil_divide(elements, turns), 2) * 2;  // words hold pairs
  if (ahead_.elements > line) ahead_.elements = ir::ceil_divide(ahead_.elements, line) * line;
}

void Nest::fetch_ahead() {
  std::int64_t turns = 0;
  const Index turn = turn_of(ahead_.first, ahead_.stage, turns);
  const std::int64_t line = kBytesOfLine / bytes(panel_a_.of->dtype);
  const int along = c_.find(s_.fetch.dims[0]);
  unrolled(builder_, ir::ceil_divide(ahead_.elements, line), [&](Index n) {
    LogicalIndex further(panel_a_.axes.size());
    for (std::size_t i = 0; i <= ahead_.row; ++i) {
      const auto d = static_cast<std::size_t>(panel_a_.order[i]);
      further[d] = panel_a_.axes[d].low + Index(panel_a_.of->index[d].coefficient_of(along) * s_.fetch.count);
    }
    further[static_cast<std::size_t>(panel_a_.order.back())] = turn * ahead_.elements + n * line;
    kernel_.prefetch(panel_a_.value, further, ir::PrefetchKind::l2);
    kernel_.prefetch_copies(further);
  });
}

// Of the operand, from a panel's coordinates.
LogicalIndex Nest::index_at(const Panel& panel, const std::vector<Index>& at) {
  LogicalIndex index;
  for (std::size_t i = 0; i < panel.axes.size(); ++i) index.push_back(panel.axes[i].low + at[i] * panel.axes[i].step);
  return index;
}

Arg Nest::copied(const Panel& panel, const std::vector<Index>& at) {
  const LogicalIndex first = index_at(panel, at);
  Expression& expression = kernel_.expression();
  int half = -1;  // of a pair may be outside
  for (std::size_t i = 0; i < panel.axes.size(); ++i)
    if (panel.axes[i].may_leave && is_paired(*panel.of, i)) half = static_cast<int>(i);
  return expression.nested([&] {
    return dot_ < 0 ? expression.value(panel.value, first)
                    : bf16_pair(expression, panel.value, *panel.of, first, dot_, half);
  });
}

// Of the element at hand.
std::vector<Index> Nest::place_in_panel(const Panel& panel) const {
  std::vector<Index> at;
  for (std::size_t d = 0; d < panel.axes.size(); ++d)
    at.push_back((evaluate(panel.of->index[d]) - panel.axes[d].low) / panel.axes[d].step);
  return place_in(panel, at);
}

Arg Nest::from_panel(const Panel& panel) { return builder_.load(panel.memory, place_in_panel(panel)); }

}  // namespace fusejit::scheduler
