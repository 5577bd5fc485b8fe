// The register tile of a nest: opened, added to by products, finished by the group's epilogue while it is in registers.
#include <algorithm>
#include <utility>

#include "ir/base/check.h"
#include "ir/ops/geometry/window.h"
#include "scheduler/lower/cuda/threads.h"
#include "scheduler/lower/nest/factor.h"
#include "scheduler/lower/nest/nest.h"
#include "scheduler/lower/nest/restore.h"
#include "scheduler/lower/partials.h"
#include "scheduler/lower/split.h"

namespace fusejit::scheduler {

using ir::Arg;
using ir::CompareKind;
using ir::Index;
using ir::KernelBuilder;
using ir::MemKind;

void Nest::over_vectors(const std::function<void(Index j)>& body) {
  unrolled(builder_, s_.vectors, [&](Index j) {
    vector_at_ = lane_of(j);
    body(j);
  });
}

// One vector is no dim of its own, unless there is nothing else.
std::vector<Index> Nest::with_vector(std::vector<Index> at, const Index& j) const {
  if (s_.vectors > 1 || at.empty()) at.push_back(j);
  return at;
}

void Nest::each_accumulator(const std::function<void(const std::vector<Index>& element, const Index& j)>& body) {
  over_tile(false, [&](const std::vector<Index>& at) { over_vectors([&](Index j) { body(with_vector(at, j), j); }); });
}

ir::MemId Nest::open_accumulators() {
  std::vector<std::int64_t> dims;
  if (!list_.empty()) dims.push_back(static_cast<std::int64_t>(list_.size()));
  for (const int d : tile_dims_) dims.push_back(range(d).size);
  if (s_.vectors > 1 || dims.empty()) dims.push_back(s_.vectors);
  if (!carried_) return builder_.local(MemKind::register_local, compute_, dims, 0);
  return builder_.local(MemKind::register_local, compute_, dims);
}

void Nest::tile(std::size_t next) {
  if (s_.matrix > 0) return multiplies_ ? multiply_tile(next) : finish_tile();
  if (begins_tree(next)) return tile_in_tree(next);
  if (s_.combine.empty()) fetch_result();
  acc_ = open_accumulators();
  if (carried_) {
    each_accumulator([&](const std::vector<Index>& element, const Index& j) {
      builder_.store(acc_, element, builder_.load(partials_, own_partial_place(j)));
    });
  }
  add_terms(next);
  if (late_.is_before) return keep_tile();
  if (s_.combine.empty()) return epilogue();
  each_accumulator([&](const std::vector<Index>& element, const Index& j) {
    real_elements([&] { builder_.store(partials_, own_partial_place(j), builder_.load(acc_, element)); });
  });
}

// Threads share the terms of a partial result.
void Nest::tile_in_tree(std::size_t next) {
  const std::size_t count = std::max<std::size_t>(1, list_.size());
  FJ_ASSERT(tile_dims_.empty() && s_.vectors == 1, "threads share the terms of a list of combinations, not of {}",
            print(s_));
  const std::vector<Arg> sums = in_tree(stages_[next].loop, std::vector(count, ir::Combiner::add),
                                        std::vector(count, compute_), [&](const Index&) {
                                          acc_ = open_accumulators();
                                          add_terms(next + 1);
                                          std::vector<Arg> state;
                                          for (std::size_t i = 0; i < count; ++i)
                                            state.push_back(builder_.load(acc_, {Index(static_cast<std::int64_t>(i))}));
                                          return state;
                                        });
  std::size_t i = 0;
  over_tile(false, [&](const std::vector<Index>&) {
    over_vectors([&](Index j) { builder_.store(partials_, own_partial_place(j), sums[i++]); });
  });
}

// All terms of the sum, or of this part of it.
void Nest::add_terms(std::size_t next) {
  long_sum_ = s_.flush.dims.empty() ? LongSum() : LongSum(builder_, acc_);
  if (long_sum_.is_open() && carried_) long_sum_.flush(builder_);  // apart from terms, of which there may be none
  if (c_.terms() > 0) {
    tile_open_ = true;
    guard_known([&] { walk(next); });
    tile_open_ = false;
  }
  if (long_sum_.is_open()) long_sum_.close(builder_);
}

void Nest::products() {
  s_.unroll_within ? multiply_within() : over_terms(0, {}, [&](const auto&) { multiply(); });
  if (fetches_weights()) fetch_weights();
}

// What is left of the reduced dims, term by term.
void Nest::over_terms(std::size_t n, const std::vector<Index>& at,
                      const std::function<void(const std::vector<Index>& at)>& body) {
  if (n == unrolled_dims_.size()) return body(at);
  const int d = unrolled_dims_[n];
  const Range of_dim = range(d);
  const std::int64_t at_once = terms_at_once(d);
  unrolled(builder_, of_dim.size / at_once, [&](Index i) {
    std::vector<Index> deeper = at;
    deeper.push_back(i);
    with(d, {of_dim.base + i * at_once, 1, false, 1}, [&] { over_terms(n + 1, deeper, body); });
  });
}

Arg Nest::factor(const Panel& panel) {
  if (panel.is_open()) return from_panel(panel);
  Expression& expression = kernel_.expression();
  const LogicalIndex index = evaluate(panel.of->index);
  return dot_ < 0 ? expression.value(panel.value, index) : bf16_pair(expression, panel.value, *panel.of, index, dot_);
}

Arg Nest::element_of_a() {
  const auto load = [&] { return kernel_.expression().nested([&] { return factor(panel_a_); }); };
  if (!c_.a.mentions(vector_) || !has_idle_lanes() || panel_a_.is_open()) return load();
  return value_or_zero(builder_, vector_at_, dim(vector_).extent, factor_, load);
}

Arg Nest::element_of_b(const Index& j) {
  if (packed_ >= 0) return builder_.load(packed_, packed_place(j));
  const auto load = [&] { return kernel_.expression().nested([&] { return factor(panel_b_); }); };
  if (!has_idle_lanes() || panel_b_.is_open()) return load();
  return value_or_zero(builder_, vector_at_, dim(vector_).extent, factor_, load);
}

// What keeps the first operand's index inside here. `never`: nothing can.
std::vector<ir::Compare> Nest::conditions(bool& never) const {
  std::vector<ir::Compare> inside;
  never = false;
  for (std::size_t i = 0; i < pending_.size(); ++i) {
    if (!pending_[i]) continue;
    const Index index = evaluate(c_.a.index[i]);
    const std::int64_t extent = c_.a.extents[i];
    if (index.is_constant()) {
      never = never || index.constant() < 0 || index.constant() >= extent;
      continue;
    }
    for (const ir::Compare& c : within(index, extent)) inside.push_back(c);
  }
  return inside;
}

// One term, `term` of those in `b`, for an element of the tile: a vector of the second operand against an element, or a
// vector, of the first.
void Nest::add_term(const std::vector<Index>& at, ir::MemId b, const std::vector<Index>& term) {
  const auto add = [&](const Index& j, const Arg& x) {
    const std::vector<Index> element = with_vector(at, j);
    const Arg y = builder_.load(b, with_vector(term, j)), sum = builder_.load(acc_, element);
    builder_.store(
        acc_, element,
        dot_ < 0 ? kernel_.multiply_add(x, y, sum, compute_) : Arg(builder_.def(ir::Op::dot2, {x, y, sum}, compute_)));
  };
  if (c_.a.mentions(vector_)) return over_vectors([&](Index j) { add(j, element_of_a()); });
  kernel_.expression().nested([&] {
    const Arg x = factor(panel_a_);
    over_vectors([&](Index j) { add(j, x); });
  });
}

// Where the first operand is inside of its bounds.
void Nest::when_inside(const std::function<void()>& body) {
  bool never = false;
  const std::vector<ir::Compare> inside = conditions(never);
  if (never) return;
  inside.empty() ? body() : builder_.when(inside, body);
}

void Nest::multiply() {
  const ir::MemId b = builder_.local(MemKind::register_local, factor_, {s_.vectors});
  over_vectors([&](Index j) { builder_.store(b, {j}, element_of_b(j)); });
  over_tile(true, [&](const std::vector<Index>& at) { when_inside([&] { add_term(at, b, {}); }); });
  if (products_fetch()) fetch_operands();
}

// The second operand's elements of all unrolled terms first, then element by element of the tile, so that the terms of
// one are neighbouring loads.
void Nest::multiply_within() {
  std::vector<std::int64_t> dims;
  for (const int d : unrolled_dims_) dims.push_back(range(d).size / terms_at_once(d));
  if (s_.vectors > 1 || dims.empty()) dims.push_back(s_.vectors);
  const ir::MemId b = builder_.local(MemKind::register_local, factor_, dims);
  over_terms(0, {}, [&](const std::vector<Index>& term) {
    over_vectors([&](Index j) { builder_.store(b, with_vector(term, j), element_of_b(j)); });
  });
  const bool taps =
      std::any_of(unrolled_dims_.begin(), unrolled_dims_.end(), [&](int d) { return pending_axis(d) >= 0; });
  over_tile(true, [&](const std::vector<Index>& at) {
    const auto add = [&](const std::vector<Index>& term) { add_term(at, b, term); };
    if (taps) return over_terms(0, {}, [&](const auto& term) { when_inside([&] { add(term); }); });
    when_inside([&] { over_terms(0, {}, add); });
  });
}

// Elements of the tile beyond the last of a dim do nothing.
void Nest::real_elements(const std::function<void()>& body) {
  std::vector<ir::Compare> real;
  for (const int d : tile_dims_) {
    if (!range(d).limited) continue;
    const Index value = range(d).base;
    if (!value.is_constant() || value.constant() >= dim(d).extent)
      real.push_back(compare(value, CompareKind::lt, dim(d).extent));
  }
  real.empty() ? body() : builder_.when(real, body);
}

// The tile at hand may be that of a sum's first element; where it is.
bool Nest::may_be_first() const {
  return std::all_of(positions_.begin(), positions_.end(),
                     [](const Index& position) { return position.constant() == 0; });
}
std::vector<ir::Compare> Nest::is_first() const {
  std::vector<ir::Compare> first;
  for (const Index& position : positions_)
    if (!position.is_constant()) first.push_back(compare(position, CompareKind::eq, 0));
  return first;
}

// While the tile is in registers: everything that the group stores or sums.
void Nest::epilogue() {
  const auto of = [&](const std::vector<Index>& element) { return [&] { return Arg(builder_.load(acc_, element)); }; };
  if (!work_.empty() && may_be_first()) {
    const auto shifts = [&] {
      // The tile's first element: every dim of it at its base.
      const std::vector<Index> first(tile_dims_.size() + (list_.empty() ? 0 : 1), Index(0));
      over_vectors([&](Index j) {
        const std::vector<Index> element = with_vector(first, j);
        at_result(of(element), [&] { accumulators_.set_shifts(state_, j); });
      });
    };
    const std::vector<ir::Compare> first = is_first();
    first.empty() ? shifts() : builder_.when(first, shifts);
  }
  over_results([&](bool has_terms) {
    each_accumulator([&](const std::vector<Index>& element, const Index& j) {
      const auto zero = [&] { return KernelBuilder::literal(0, compute_); };
      real_elements([&] { has_terms ? finish_result(of(element), j) : finish_result(zero, j); });
    });
  });
}

// Part of the index of a window.
bool Nest::is_tap(int d) const {
  return std::any_of(c_.a.index.begin(), c_.a.index.end(), [&](const ir::DimSum& sum) {
    return sum.terms.size() == 2 && sum.coefficient_of(d) != 0 && sum.coefficient_of(vector_) == 0;
  });
}

// The tile further along a parallel dim: what its epilogue touches and, where vectors of the first operand are read,
// its new lines of them. What lies side by side in memory is many elements apart there, which no processor foresees.
void Nest::fetch_result() {
  if (s_.fetch.dims.empty() || fetches_weights()) return;
  if (fetches_runs()) {
    if (fetch_stage_ == 0) fetch_run();
    return;
  }
  const int d = c_.find(s_.fetch.dims[0]);
  if (dim(d).reduced) return;
  const bool lines = c_.a.mentions(vector_) && !panel_a_.is_open() &&
                     std::all_of(c_.dims.begin(), c_.dims.end(), [&](const auto& other) {
                       const int i = c_.find(other.name);
                       return !other.reduced || other.extent == 1 || is_tap(i);
                     });
  const Range here = range(d);
  with(d, {here.base + Index(s_.fetch.count), here.size, false, 1}, [&] {
    over_tile(false, [&](const std::vector<Index>&) {
      unrolled(builder_, s_.vectors, [&](Index j) {
        vector_at_ = range(vector_).base + j * s_.lanes;
        if (lines) fetch_new_lines(0, d);
        over_results([&](bool) {
          kernel_.move_to_dims(evaluate(*result_));
          kernel_.prefetch_elements(stored_vectors());
        });
      });
    });
  });
}

// All of the next task's elements are fetched while a task computes its own: then each block of outputs fetches a run
// of whole rows of outputs, not its own vectors of them, which memory would have to open once for each block.
bool Nest::fetches_runs() const {
  if (s_.fetch.dims.empty() || !s_.combine.empty()) return false;
  const int d = c_.find(s_.fetch.dims[0]);
  std::int64_t of_task = dim(d).extent;
  for (const ScheduledLoop& task : s_.tasks)
    if (task.dims == s_.fetch.dims) of_task = task.step > 0 ? task.step : held(d);
  const auto over_outputs = [&](const ScheduledLoop& loop) { return loop.dims[0] == s_.vector && loop.step == 0; };
  return s_.fetch.count >= of_task && list_dims_.empty() && tile_dims_.size() == 1 && tile_dims_[0] != d &&
         !has_idle_lanes() && !c_.a.mentions(vector_) && std::any_of(s_.outer.begin(), s_.outer.end(), over_outputs) &&
         std::none_of(s_.tasks.begin(), s_.tasks.end(), [&](const auto& task) { return task.dims[0] == s_.vector; });
}

// By the outermost loops over terms that have a turn for every few lines: an index that is no multiple of the innermost
// loop's variable costs registers there.
void Nest::plan_fetch_of_runs() {
  std::int64_t lines = held(tile_dims_[0]) * s_.vectors, turns = 1;
  for (const std::int64_t count : elements_beside()) lines *= count;
  for (std::size_t i = 0; i < stages_.size() && turns * kMostLinesOfTurn < lines && c_.terms() > 0; ++i) {
    const int of = stages_[i].loop.dim;
    if (stages_[i].kind != Kind::loop || !dim(of).reduced || is_together(of)) continue;
    const bool in_blocks = std::any_of(stages_.begin() + static_cast<std::ptrdiff_t>(i) + 1, stages_.end(),
                                       [&](const Stage& inner) { return inner.loop.dim == of; });
    if (in_blocks) continue;
    turns *= ir::ceil_divide(dim(of).extent, stages_[i].loop.step);
    fetch_turns_.push_back(of);
    fetch_stage_ = i + 1;
  }
}

// The tile's elements and all vectors of outputs of each, one after the other: this block's share of them, spread over
// the terms of the tile.
void Nest::fetch_run() {
  const int along = c_.find(s_.fetch.dims[0]), d = tile_dims_[0];
  const Range tile = range(d), row = range(along);
  const std::vector<std::int64_t> beside = elements_beside();
  std::int64_t rows = 1, columns = 1;  // that lie beside each element, in other dims of the result and in the tile's
  for (std::size_t i = 0; i < beside.size(); ++i) (c_.result[i].coefficient_of(d) != 0 ? columns : rows) *= beside[i];
  const std::int64_t vectors = dim(vector_).extent / s_.lanes, share = rows * columns * tile.size * s_.vectors;
  Index turn = 0;
  std::int64_t turns = 1;
  for (const int of : fetch_turns_) {
    const std::int64_t count = ir::ceil_divide(dim(of).extent, held(of));
    turn = turn * count + range(of).base / held(of), turns *= count;
  }
  const std::int64_t at_once = ir::ceil_divide(share, turns);
  const Index first =
      range(vector_).base / s_.block() * share + (turns > share ? turn * share / turns : turn * at_once);
  const Restore lane(vector_at_);
  with(along, {row.base + Index(s_.fetch.count), row.size, false, 1}, [&] {
    unrolled(builder_, at_once, [&](Index n) {
      vector_at_ = (first + n) % vectors * s_.lanes;
      const Index element = (first + n) / vectors;
      with(d, {tile.base + element / columns % tile.size, 1, false, 1}, [&] {
        LogicalIndex index = evaluate(c_.result);
        Index of_rows = element / columns / tile.size;
        for (std::size_t i = beside.size(); i-- > 0;) {
          if (beside[i] == 1) continue;
          const bool is_column = c_.result[i].coefficient_of(d) != 0;
          index[i] = index[i] + (is_column ? element % columns : of_rows % beside[i]);
          if (!is_column) of_rows = of_rows / beside[i];
        }
        kernel_.move_to_dims(std::move(index));
        kernel_.prefetch_elements(stored_vectors());
      });
    });
  });
}

// How many elements along each dim of the result lie from the contraction's to the next of its own, if those without
// terms are all between: else only its own are fetched.
std::vector<std::int64_t> Nest::elements_beside() const {
  std::vector<std::int64_t> beside(c_.result.size(), 1);
  std::int64_t all = 1;
  for (std::size_t i = 0; i < beside.size(); ++i) {
    for (const ir::Contraction& zero : beside_)
      beside[i] = std::max(beside[i], zero.result[i].constant - c_.result[i].constant + 1);
    all *= beside[i];
  }
  if (all != elements_together()) beside.assign(beside.size(), 1);
  return beside;
}

// Taps that read what the tiles before do not: as many of them as their window moves on.
void Nest::fetch_new_lines(std::size_t axis, int along) {
  if (axis == c_.a.index.size()) return kernel_.prefetch(value_a_, evaluate(c_.a.index));
  int tap = -1;
  std::int64_t stride = 0;
  for (const ir::DimSum::Term& term : c_.a.index[axis].terms) {
    if (dim(term.dim).reduced) tap = term.dim;
    if (!dim(term.dim).reduced) stride = term.coefficient * (term.dim == along ? s_.fetch.count : 1);
  }
  if (tap < 0 || c_.a.index[axis].terms.size() < 2) return fetch_new_lines(axis + 1, along);
  const std::int64_t taps = dim(tap).extent;
  for (std::int64_t t = 0; t < std::min(stride, taps); ++t)
    with(tap, {Index(taps - 1 - t), 1, false, 1}, [&] { fetch_new_lines(axis + 1, along); });
}

// Of the term that takes this one's place, so many steps further along a dim that is summed up: the operands whose next
// panel is not fetched as a whole.
void Nest::fetch_operands() {
  const int d = c_.find(s_.fetch.dims[0]);
  const Range here = range(d);
  const Restore lane(vector_at_);
  if (s_.tiles_a) return;
  with(d, {here.base + Index(s_.fetch.count), 1, false, 1}, [&] {
    if (!panel_b_.is_open()) {
      unrolled(builder_, s_.vectors, [&](Index j) {
        vector_at_ = range(vector_).base + j * s_.lanes;
        kernel_.prefetch(value_b_, evaluate(c_.b.index));
      });
    }
    if (s_.fetch_b) return;
    vector_at_ = range(vector_).base;  // a prefetch names no lane
    const auto corner = [&](bool last) {
      const std::function<void(std::size_t)> set = [&](std::size_t n) {
        if (n == tile_dims_.size()) return kernel_.prefetch(value_a_, evaluate(c_.a.index));
        const Range whole = range(tile_dims_[n]);
        with(tile_dims_[n], {whole.base + Index(last ? whole.size - 1 : 0), 1, false, 1}, [&] { set(n + 1); });
      };
      set(0);
    };
    corner(false), corner(true);
  });
}

// The packed weights of a block of outputs further on: of the terms at hand a share of their lines, another for each
// tile that passes over the block at hand, so that together they fetch all of it once.
void Nest::fetch_weights() {
  Index tile = 0;
  std::int64_t tiles = 1;
  for (std::size_t i = 0; i < c_.dims.size(); ++i) {
    const int d = static_cast<int>(i);
    if (dim(d).reduced || c_.b.mentions(d)) continue;
    const std::int64_t count = ir::ceil_divide(dim(d).extent, held(d));
    tile = tile * count + range(d).base / held(d), tiles *= count;
  }
  std::vector<std::int64_t> terms;
  std::int64_t lines = 1;
  for (const int d : unrolled_dims_) terms.push_back(range(d).size / terms_at_once(d)), lines *= terms.back();
  const std::int64_t of_line = 64 / bytes(factor_), lines_of_term = ir::ceil_divide(s_.pack_b, of_line);
  terms.push_back(lines_of_term), lines *= lines_of_term;
  const std::int64_t share = ir::ceil_divide(lines, tiles);
  for (std::int64_t n = 0; n < share; ++n) {
    const std::vector<Index> at = cuda::decode((tile * share + n) % lines, terms);
    const std::function<void(std::size_t)> set = [&](std::size_t i) {
      if (i < unrolled_dims_.size()) {
        const int d = unrolled_dims_[i];
        const Range here = range(d);
        return with(d, {here.base + at[i] * terms_at_once(d), 1, false, 1}, [&] { set(i + 1); });
      }
      const Restore lane(lane_);
      lane_ = at.back() * of_line;
      const Range here = range(vector_);
      with(vector_, {here.base + Index(s_.fetch.count), here.size, false, 1},
           [&] { builder_.prefetch(packed_, packed_place(0), ir::PrefetchKind::l2); });
    };
    set(0);
  }
}

// Elements of an epilogue's state: the product of all dims, some of which end early in the last block of their loops.
Arg Nest::counted(const Index& thread) {
  if (by_threads_) return counted_by_thread(thread);
  std::vector<Block> blocks{{0, elements_together(), elements_together()}};
  for (std::size_t i = 0; i < c_.dims.size(); ++i) {
    const Range& here = range(static_cast<int>(i));
    if (is_summed_by_epilogue(static_cast<int>(i)))
      blocks.push_back({here.base, here.size, here.limited ? c_.dims[i].extent : here.size});
  }
  return elements_in(blocks);
}

// The pixels are one loop together, shared out to grid and threads.
Arg Nest::counted_by_thread(const Index& thread) {
  for (std::size_t i = 0; i < together_.size(); ++i) {
    const int d = static_cast<int>(c_.dims.size() + i);
    if (!is_summed_by_epilogue(d)) continue;
    std::int64_t held_at_once = 1;
    for (const int of : together_[i]) held_at_once *= held(of);
    const Range& share = range(d);
    const std::int64_t chunk = share.size * share.stride;
    const Index part = (share.base - thread) / chunk;
    return cuda::item_count(builder_, {dim(d).extent, share.stride, chunk, ir::ceil_divide(dim(d).extent, chunk)}, part,
                            thread, held_at_once);
  }
  throw InternalError(fmt::format("nothing is summed up in {}", print(s_)));
}

void Nest::leave_all_sums(const std::function<std::vector<Arg>(const Index& j)>& state) {
  over_vectors([&](Index j) { valid_lanes([&] { leave_sums(part_, state(j)); }); });
}

}  // namespace fusejit::scheduler
