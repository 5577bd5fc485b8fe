#include "scheduler/lower/nest/nest.h"

#include <algorithm>
#include <utility>

#include "ir/base/check.h"
#include "ir/ops/geometry/window.h"
#include "scheduler/lower/cuda/threads.h"
#include "scheduler/lower/nest/factor.h"
#include "scheduler/lower/nest/restore.h"
#include "scheduler/lower/partials.h"
#include "scheduler/lower/split.h"

namespace fusejit::scheduler {

using ir::Arg;
using ir::Binding;
using ir::CompareKind;
using ir::Index;

namespace {

constexpr std::int64_t kMostCopied = 64;  // iterations of an unrolled loop (kernel-ir.md §5)

}  // namespace

Nest::Nest(GroupKernel& kernel, Accumulators& accumulators, const ScheduledContraction& scheduled)
    : ContractionLoops(kernel, accumulators, scheduled),
      dot_(s_.dot.empty() ? -1 : c_.find(s_.dot)),
      factor_(factor_type(s_, compute_)),
      by_threads_(s_.by_threads()),
      dims_(c_.dims) {
  panel_a_ = {&c_.a, value_a_}, panel_b_ = {&c_.b, value_b_};
  zeros_.resize(c_.a.index.size());
  if (dot_ >= 0) {
    dims_[static_cast<std::size_t>(dot_)].extent += dim(dot_).extent % 2;  // whose last pair ends with 0
    // Beside sums nothing is gained, and with fewer instructions LLVM kept fewer accumulators in registers.
    if (kernel.group().reductions.empty()) kernel.expression().round_beside_pairs();
  }
  for (std::size_t d = 0; d < c_.dims.size(); ++d) {
    held_.push_back(s_.held(c_.dims[d].name));
    ranges_.push_back({0, dims_[d].extent, false, 1});
    const int i = static_cast<int>(d);
    if (s_.combinations(c_.dims[d].name) != nullptr || i == vector_ || held_.back() == 1) continue;
    (c_.dims[d].reduced ? unrolled_dims_ : tile_dims_).push_back(i);
  }
  for (const Extent& extent : s_.tile) {
    if (extent.dims.size() == 1) continue;
    FJ_ASSERT(list_dims_.empty(), "two tiles over several dims in {}", print(s_));
    for (const std::string& name : extent.dims) list_dims_.push_back(c_.find(name));
  }
  std::vector<ir::ContractionDim> padded = dims_;  // threads hold whole tiles
  for (std::size_t d = 0; by_threads_ && d < padded.size(); ++d)
    if (static_cast<int>(d) != vector_) padded[d].extent = ir::ceil_divide(padded[d].extent, held_[d]) * held_[d];
  for (std::size_t d = 0; d < c_.a.index.size(); ++d) pending_.push_back(c_.a.may_leave(static_cast<int>(d), padded));

  const auto resolve = [&](const ScheduledLoop& of_schedule, bool task) {
    Loop loop;
    loop.last = of_schedule.step == 0 && of_schedule.stride == 0;
    loop.step = of_schedule.step, loop.stride = of_schedule.stride, loop.bound = of_schedule.bound, loop.task = task;
    std::vector<int> dims;
    for (const std::string& name : of_schedule.dims) dims.push_back(c_.find(name));
    loop.list = dims.size() > 1 && dims == list_dims_;
    loop.dim = dims.size() > 1 && !loop.list ? together(dims) : dims[0];
    if (loop.last) loop.step = loop.list ? 1 : held(loop.dim);
    return loop;
  };
  const auto panels_after = [&](const std::string& loop) {
    if (s_.panel_a == loop || (loop == Schedule::kTask && copies_words())) stages_.push_back({Kind::panel_a, {}});
    if (s_.panel_b == loop) stages_.push_back({Kind::panel_b, {}});
  };
  for (const ScheduledLoop& task : s_.tasks) stages_.push_back({Kind::loop, resolve(task, true)});
  if (combines_in_tasks()) stages_.push_back({Kind::results_of_task, {}});
  panels_after(Schedule::kTask);
  for (const ScheduledLoop& outer : s_.outer) {
    Loop loop = resolve(outer, false);
    if (dim(loop.dim).reduced && !carried_) stages_.push_back({Kind::clear, {}}), carried_ = true;
    stages_.push_back({Kind::loop, loop});
    const bool again = std::any_of(&outer + 1, s_.outer.data() + s_.outer.size(),
                                   [&](const ScheduledLoop& later) { return later.dims == outer.dims; });
    if (outer.dims.size() == 1 && !again) panels_after(outer.dims[0]);
  }
  stages_.push_back({Kind::lanes, {}});
  bool open = false;
  for (const ScheduledLoop& inner : s_.inner) {
    const Loop loop = resolve(inner, false);
    if (dim(loop.dim).reduced && !open) stages_.push_back({Kind::tile, {}}), open = true;
    stages_.push_back({Kind::loop, loop});
  }
  if (!open) stages_.push_back({Kind::tile, {}});
  if (fetches_runs()) plan_fetch_of_runs();
}

// Several dims as one: all combinations, the last one fastest; what the registers hold of a dim counts as one.
int Nest::together(const std::vector<int>& dims) {
  for (std::size_t i = 0; i < together_.size(); ++i)
    if (together_[i] == dims) return static_cast<int>(c_.dims.size() + i);
  ir::ContractionDim all{"", 1, false};
  for (const int d : dims) {
    all.name += (all.name.empty() ? "" : "*") + dim(d).name;
    all.extent *= ir::ceil_divide(dim(d).extent, held(d));
    all.reduced = all.reduced || dim(d).reduced;
  }
  dims_.push_back(all);
  together_.push_back(dims);
  held_.push_back(1);
  ranges_.push_back({0, all.extent, false, 1});
  return static_cast<int>(dims_.size()) - 1;
}

std::int64_t Nest::parts() const {
  std::int64_t parts = 1;
  for (const Stage& stage : stages_) {
    if (stage.kind == Kind::lanes) break;
    if (stage.kind == Kind::loop) parts *= parts_of(stage.loop);
  }
  return parts;
}

// How many parts of a sum the loop makes: of the epilogue's, or of the result where partial results are combined.
std::int64_t Nest::parts_of(const Loop& loop) const {
  const int d = loop.dim;
  const bool cuts = s_.combine.empty() ? is_summed_by_epilogue(d) : dim(d).reduced && loop.task;
  return cuts && !loop.list ? ir::ceil_divide(range_size(loop), loop.step) : 1;
}

// Of the range that outer loops over the same dim leave.
std::int64_t Nest::range_size(const Loop& loop) const {
  std::int64_t size = dim(loop.dim).extent;
  for (const Stage& stage : stages_) {
    if (&stage.loop == &loop) break;
    if (stage.kind == Kind::loop && stage.loop.dim == loop.dim) size = stage.loop.step;
  }
  return size;
}

bool Nest::is_summed_by_epilogue(int d) const {
  if (is_together(d)) {
    const std::vector<int>& dims = together_[static_cast<std::size_t>(d) - c_.dims.size()];
    return std::any_of(dims.begin(), dims.end(), [this](int of) { return is_summed_by_epilogue(of); });
  }
  return sums_over(d);
}

void Nest::emit(const std::vector<ir::MemId>& work, std::int64_t first_part) {
  work_ = work, first_part_ = first_part;
  const bool in_phase = !s_.combine.empty() && !combines_in_tasks();
  if (in_phase) declare_partial_results();
  walk(0);
  if (in_phase) by_threads_ ? combine_by_threads() : combine();
}

void Nest::walk(std::size_t stage) {
  if (stage > 0 && stage == fetch_stage_) fetch_run();
  if (stage > 0 && stage == ahead_.stage) fetch_ahead();
  if (late_.is_before && stage == late_.stage) finish_part_of_tile();
  for (const Panel* panel : {&panel_a_, &panel_b_})
    if (panel->fetched_at == stage && stage > 0) fetch_next(*panel);
  if (stage == stages_.size()) return products();
  switch (stages_[stage].kind) {
    case Kind::loop:
      return loop(stages_[stage].loop, stage + 1);
    case Kind::results_of_task:
      return results_of_task(stage + 1);
    case Kind::clear:
      clear_partial_results();
      return walk(stage + 1);
    case Kind::panel_a:
      return in_panel(panel_a_, stage + 1);
    case Kind::panel_b:
      return in_panel(panel_b_, stage + 1);
    case Kind::lanes:
      return lanes(stage + 1);
    case Kind::tile:
      return tile(stage + 1);
  }
}

void Nest::loop(const Loop& loop, std::size_t next) {
  if (loop.list) return over_list(next);
  if (loop.stride > 0) return over_strided(loop, next);
  if (!loop.last || loop.dim == vector_ || (loop.task && dim(loop.dim).reduced && held(loop.dim) > 1))
    return over_blocks(loop, next);
  held(loop.dim) == 1 ? over_elements(loop, next) : over_held(loop, next);
}

void Nest::with(int d, Range of_dim, const std::function<void()>& body) {
  const Restore restore(range(d));
  range(d) = std::move(of_dim);
  body();
}

// One element of a dim, or one combination of those that it is made of.
void Nest::one(int d, const Index& value, const std::function<void()>& body) {
  if (!is_together(d)) return with(d, {value, 1, false, 1}, body);
  const std::vector<int>& dims = together_[static_cast<std::size_t>(d) - c_.dims.size()];
  std::vector<std::int64_t> counts;
  for (const int of : dims)  // of a dim without elements there is none, and its loop has no turn
    counts.push_back(std::max<std::int64_t>(1, ir::ceil_divide(dim(of).extent, held(of))));
  const std::vector<Index> at = cuda::decode(value, counts);
  const std::function<void(std::size_t)> set = [&](std::size_t n) {
    if (n == dims.size()) return body();
    const int of = dims[n];
    with(of, {at[n] * held(of), held(of), dim(of).extent % held(of) != 0, 1}, [&] { set(n + 1); });
  };
  set(0);
}

// Of several dims together that threads take in turn: the outermost is below its extent, which is the same. It may
// be a sum of quotients, and of that nothing would be proven otherwise.
ir::Compare Nest::is_element(int d, const Index& value) const {
  std::int64_t outermost = 1, inner = dim(d).extent;
  for (std::size_t n = 0; is_together(d) && range(d).stride > 1 && outermost == 1 && inner > 1; ++n) {
    const int of = together_[static_cast<std::size_t>(d) - c_.dims.size()][n];
    outermost = ir::ceil_divide(dim(of).extent, held(of)), inner /= outermost;
  }
  return outermost == 1 ? compare(value, CompareKind::lt, dim(d).extent)
                        : compare(value / inner, CompareKind::lt, outermost);
}

void Nest::at_position(const Loop& loop, const Index& position, const std::function<void()>& body) {
  const bool inner = state_open_ && !dim(loop.dim).reduced;
  if (inner) positions_.push_back(position);
  body();
  if (inner) positions_.pop_back();
}

void Nest::in_part(const Loop& loop, const Index& i, const std::function<void()>& body) {
  const Restore restore(part_);
  if (!state_open_ && parts_of(loop) > 1) part_ = part_ * parts_of(loop) + i;
  body();
}

void Nest::emit_loop(std::vector<Index> low, std::vector<Index> high, Binding binding, const Body& body) {
  const bool once = low.size() == 1 && high.size() == 1 && low[0] == Index(0) && high[0] == Index(1);
  if (once && binding == Binding::grid_x)
    return builder_.loop(low[0], high[0], binding, [&](Index) { body(Index(0)); });
  if (once) return body(Index(0));
  builder_.loop(std::move(low), std::move(high), binding, body);
}

// What runs the iterations of a loop.
Binding Nest::binding_of(const Loop& loop) {
  return loop.bound == Binding::none && loop.task ? Binding::threads : loop.bound;
}

// Every stride-th element from `first` on.
Nest::Range Nest::strided(int d, std::int64_t stride, const Index& first) const {
  const Range& all = range(d);
  return {all.base + first * all.stride, ir::ceil_divide(all.size, stride), all.limited || all.size % stride != 0,
          all.stride * stride};
}

void Nest::over_strided(const Loop& loop, std::size_t next) {
  emit_loop({Index(0)}, {Index(loop.stride)}, binding_of(loop),
            [&](Index i) { with(loop.dim, strided(loop.dim, loop.stride, i), [&] { walk(next); }); });
}

// Threads that share a sum leave one state.
std::vector<ir::Arg> Nest::in_tree(const Loop& loop, const std::vector<ir::Combiner>& combiners,
                                   const std::vector<DType>& types,
                                   const std::function<std::vector<ir::Arg>(const Index& thread)>& body) {
  const std::vector<ir::ValueId> ids =
      builder_.reduce({Index(0)}, {Index(loop.stride)}, binding_of(loop), combiners, types, [&](Index thread) {
        std::vector<ir::Arg> state;
        with(loop.dim, strided(loop.dim, loop.stride, thread), [&] { state = body(thread); });
        return state;
      });
  return {ids.begin(), ids.end()};
}

bool Nest::begins_tree(std::size_t stage) const {
  return stage < stages_.size() && stages_[stage].kind == Kind::loop && stages_[stage].loop.stride > 0;
}

// Of a loop over groups whose last vectors have idle lanes it would not be provable that each output has one writer.
bool Nest::needs_copies(int d) const {
  return !dim(d).reduced && has_idle_lanes() && s_.combine.empty() && c_.lies_behind(d, vector_);
}

// The combinations of a tile are known when the text is written.
void Nest::over_list(std::size_t next) {
  std::vector<std::int64_t> extents;
  std::int64_t count = 1;
  for (const int d : list_dims_) extents.push_back(dim(d).extent), count *= extents.back();
  const std::int64_t most = s_.combinations(dim(list_dims_[0]).name)->count;
  for (std::int64_t first = 0; first < count; first += most) {
    list_.clear(), active_.clear();
    for (std::int64_t i = first; i < std::min(count, first + most); ++i) {
      std::vector<std::int64_t> values(extents.size());
      std::int64_t rest = i;
      for (std::size_t n = extents.size(); n-- > 0; rest /= extents[n]) values[n] = rest % extents[n];
      active_.push_back(list_.size());
      list_.push_back(std::move(values));
    }
    walk(next);
  }
  list_.clear(), active_.clear();
}

// One element at a time. Where the dim makes an operand's index that may leave the operand, and all else in that index
// is known, the bounds keep it inside.
void Nest::over_elements(const Loop& loop, std::size_t next) {
  const int d = loop.dim;
  const Range of_dim = range(d);
  const auto step = [&](const Index& i) {
    one(d, of_dim.base + i * of_dim.stride,
        [&] { in_part(loop, i, [&] { at_position(loop, i, [&] { guard_known([&] { walk(next); }); }); }); });
  };
  if (by_threads_ || is_together(d)) {
    return emit_loop({Index(0)}, {Index(of_dim.size)}, binding_of(loop), [&](Index i) {
      if (!of_dim.limited) return step(i);
      const ir::Compare real = is_element(d, of_dim.base + i * of_dim.stride);
      if (!loop.task) return builder_.when({real}, [&] { step(i); });
      deferred_.push_back(real);
      step(i);
      deferred_.pop_back();
    });
  }
  const int axis = dim(d).reduced && !loop.task ? pending_axis(d) : -1;
  if (axis >= 0 && held_in_list(partner(axis, d))) return over_edges(loop, axis, next);
  const bool known = axis >= 0 && range(partner(axis, d)).size == 1 && held(partner(axis, d)) == 1;
  if (needs_copies(d)) {
    for (std::int64_t i = 0; i < of_dim.size; ++i) with(d, {of_dim.base + Index(i), 1, false, 1}, [&] { walk(next); });
    return;
  }
  std::vector<Index> low{Index(0)}, high{Index(of_dim.size)};
  if (of_dim.limited) high.push_back(Index(dim(d).extent) - of_dim.base);
  const int zeros = dim(d).reduced && !loop.task && !of_dim.limited ? axis_with(zeros_, d) : -1;
  if (zeros >= 0 && range(partner(zeros, d)).size == 1 && held(partner(zeros, d)) == 1) {
    const Clip inside = clip(zeros, d, of_dim);
    low.push_back(inside.low), high.push_back(inside.high);
    return builder_.loop(low, high, Binding::none, step);
  }
  if (known && !of_dim.limited) {
    const Clip inside = clip(axis, d, of_dim);
    low.push_back(inside.low), high.push_back(inside.high);
    return builder_.loop(low, high, Binding::none, [&](Index i) { resolved(axis, [&] { step(i); }); });
  }
  // The taps of an edge tile are copied, so that its conditions are constants.
  const bool unroll =
      axis >= 0 && !known && range(partner(axis, d)).size > 1 && !of_dim.limited && of_dim.size <= kMostCopied;
  emit_loop(low, high, unroll ? Binding::unroll : binding_of(loop), [&](Index i) {
    if (!known) return step(i);
    const Restore restore(range(d));
    range(d) = {of_dim.base + i, 1, false, 1};
    const auto a = static_cast<std::size_t>(axis);
    builder_.when(within(evaluate(c_.a.index[a]), c_.a.extents[a]), [&] { resolved(axis, [&] { step(i); }); });
  });
}

void Nest::over_blocks(const Loop& loop, std::size_t next) {
  const int d = loop.dim;
  const Range of_dim = range(d);
  const std::int64_t size = d == vector_ && loop.last ? loop.step : std::min(loop.step, of_dim.size);
  std::vector<Index> high{Index(ir::ceil_divide(of_dim.size, loop.step))};
  if (of_dim.limited && loop.bound == Binding::none)
    high.push_back((Index(dim(d).extent + loop.step - 1) - of_dim.base) / loop.step);
  const bool limited = of_dim.limited || (of_dim.size > loop.step && of_dim.size % loop.step != 0);
  emit_loop({Index(0)}, high, binding_of(loop), [&](Index i) {
    with(d, {of_dim.base + i * loop.step, size, limited && size > 1, 1},
         [&] { in_part(loop, i, [&] { at_position(loop, i, [&] { walk(next); }); }); });
  });
}

// As many elements at once as the registers hold: whole ones in a loop, the narrower last one by itself. Edge tiles,
// from which a window may leave the operand, are copies.
void Nest::over_held(const Loop& loop, std::size_t next) {
  const int d = loop.dim;
  const Range of_dim = range(d);
  const std::int64_t step = loop.step;
  const auto held_at = [&](const Index& base, std::int64_t size, const Index& position) {
    with(d, {base, size, false, 1},
         [&] { in_part(loop, position, [&] { at_position(loop, position, [&] { walk(next); }); }); });
  };
  const int axis = dim(d).reduced || by_threads_ || loop.task ? -1 : pending_axis(d);
  if (axis >= 0 && !of_dim.limited && of_dim.base.is_constant()) {
    const std::int64_t start = of_dim.base.constant(), tiles = ir::ceil_divide(of_dim.size, step);
    const auto interior = [&](std::int64_t tile) {
      return (tile + 1) * step <= of_dim.size &&
             stays_inside(axis, d, start + tile * step, start + (tile + 1) * step - 1);
    };
    for (std::int64_t tile = 0; tile < tiles;) {
      std::int64_t end = tile;
      while (end < tiles && interior(end)) ++end;
      if (end > tile) {
        resolved(axis, [&] {
          emit_loop({Index(0)}, {Index(end - tile)}, Binding::none,
                    [&](Index i) { held_at(Index(start) + (i + Index(tile)) * step, step, i + Index(tile)); });
        });
        tile = end;
        continue;
      }
      held_at(Index(start + tile * step), std::min(step, of_dim.size - tile * step), Index(tile));
      ++tile;
    }
    return;
  }
  const std::int64_t extent = of_dim.limited ? dim(d).extent : of_dim.size, rest = extent % step;
  const std::int64_t whole = of_dim.size / step;
  const auto body = [&](Index i) { held_at(of_dim.base + i * step, step, i); };
  const bool flushes = !s_.flush.dims.empty() && s_.flush.dims[0] == dim(d).name;
  const auto flush = [&] { long_sum_.flush(builder_); };
  const auto rest_at = [&](const Index& base, const Index& position) {
    held_at(base, rest, position);
    if (flushes) flush();  // nothing is left where a condition keeps the next of these loops from running
  };
  if (whole > 0) {
    if (flushes && of_dim.limited) {
      const std::int64_t parts = ir::ceil_divide(extent, of_dim.size);
      loop_chunk_in_blocks(
          builder_, {extent / step, whole, parts}, of_dim.base / of_dim.size, s_.flush.count / step,
          [&](const Index& i) { held_at(i * step, step, i); }, flush);
    } else if (flushes) {
      loop_in_blocks(builder_, whole, s_.flush.count / step, body, flush);
    } else {
      std::vector<Index> high{Index(whole)};
      if (of_dim.limited) high.push_back(Index(extent / step) - of_dim.base / step);
      if (whole > 1 && finishes_late(loop, next))
        over_late_tiles(loop, next, whole);
      else
        emit_loop({Index(0)}, high, binding_of(loop), body);
    }
  }
  if (rest == 0) return;
  if (!of_dim.limited) return rest_at(of_dim.base + Index(whole * step), Index(whole));
  const std::int64_t last = (extent - 1) / of_dim.size;  // the block that is not whole
  builder_.when({compare(of_dim.base / of_dim.size, CompareKind::eq, last)},
                [&] { rest_at(Index(extent - rest), Index((extent - last * of_dim.size) / step)); });
}

void Nest::lanes(std::size_t next) {
  if (s_.matrix > 0) multiply_in_matrix_unit(next);
  const auto body = [&](const Index& lane) {
    lane_ = lane;
    if (work_.empty()) return walk(next);
    const auto state_of = [&](std::size_t stage, const Index& thread) {
      state_ = accumulators_.open(s_.vectors);
      state_open_ = true;
      walk(stage);
      state_open_ = false;
      return counted(thread);
    };
    if (!begins_tree(next)) {
      const Arg count = state_of(next, 0);
      return leave_all_sums([&](const Index& j) { return accumulators_.partial(state_, j, count); });
    }
    const std::vector<Arg> joined =
        in_tree(stages_[next].loop, accumulators_.combiners(), accumulators_.types(), [&](const Index& thread) {
          const Arg count = state_of(next + 1, thread);
          return accumulators_.partial(state_, Index(0), count);
        });
    leave_all_sums([&](const Index&) { return joined; });
  };
  if (s_.finish_late) late_.kept = builder_.local(ir::MemKind::scratch_local, compute_, {s_.tile[0].count, s_.block()});
  const auto lanes = [&] { s_.lanes == 1 ? body(0) : builder_.loop(Index(0), Index(s_.lanes), Binding::vector, body); };
  deferred_.empty() ? lanes() : builder_.when(deferred_, lanes);
}

}  // namespace fusejit::scheduler
