// Groups with reductions: one pass over the domain adds every element to accumulators and stores what is stored on the
// way; partial states of parallel tasks meet in `work`, and a second phase combines them in a fixed order.
//
// The last axis runs in lanes. If it is kept, a block of columns walks down the reduced axes; if it is reduced, lanes
// meet in a tree.
#include <algorithm>

#include "ir/base/check.h"
#include "scheduler/lower/accumulator.h"
#include "scheduler/lower/domain/domain.h"
#include "scheduler/lower/domain/next_windows.h"
#include "scheduler/lower/domain/ranges.h"
#include "scheduler/lower/expression/kept_maxima.h"
#include "scheduler/lower/partials.h"

namespace fusejit::scheduler {

using ir::Arg;
using ir::Binding;
using ir::Index;
using ir::KernelBuilder;
using ir::Op;

namespace {

class Reducer {
 public:
  Reducer(GroupKernel& kernel, const GroupDomain& of, const Schedule& schedule)
      : kernel_(kernel),
        builder_(kernel.builder()),
        s_(schedule),
        axes_(of.domain.axes),
        lanes_(axes_.size() - 1),
        ranges_(builder_, of.domain, schedule),
        accumulators_(kernel),
        maxima_(kernel, schedule.panel_maxima.empty() ? -1 : of.overlapping),
        pooled_(of.pooled >= 0 && schedule.unroll == of.domain.windows ? of.pooled : -1),
        next_(kernel, maxima_.active() ? of.overlapping : pooled_, schedule),
        tasks_(axes_of(of.domain, schedule.tasks)),
        outer_(tasks_),
        inner_(axes_of(of.domain, schedule.inner)),
        point_(axes_.size()) {
    const std::vector<std::size_t> kept = axes_of(of.domain, schedule.outer);
    outer_.insert(outer_.end(), kept.begin(), kept.end());
    for (std::size_t a = 0; a < axes_.size(); ++a) {
      if (!axes_[a].reduced) continue;
      total_ *= axes_[a].extent;
      if (ranges_.is_cut(a)) cut_ = static_cast<int>(a);
      if (a != lanes_) reduced_.push_back(a);
    }
    if (!s_.flush.dims.empty()) accumulators_.sum_in_blocks();
    if (!s_.fetch.dims.empty()) fetched_axis_ = static_cast<std::size_t>(of.domain.find(s_.fetch.dims[0]));
  }

  void emit() {
    if (parts() > 1) work_ = declare_partials(kernel_, accumulators_, parts());
    next_loop(0);
    if (parts() > 1) combine_partials(kernel_, accumulators_, work_, parts(), total_);
  }

 private:
  bool lanes_kept() const { return !axes_[lanes_].reduced; }
  // Tasks that share a reduced axis.
  std::int64_t parts() const { return cut_ < 0 ? 1 : ranges_.of(static_cast<std::size_t>(cut_)).chunks; }
  bool is_cut(std::size_t axis) const { return cut_ == static_cast<int>(axis); }
  Index part() const { return ranges_.task(static_cast<std::size_t>(cut_)); }

  // Tasks, then loops over what is kept.
  void next_loop(std::size_t i) {
    if (i == outer_.size()) return lanes_kept() ? columns() : row();
    const std::size_t axis = outer_[i];
    const auto inside = [&] {
      if (!axes_[axis].reduced) point_[axis] = ranges_.first(axis);
      next_loop(i + 1);
    };
    if (axis == lanes_ && lanes_kept()) return blocks_of_columns(i);
    if (i < tasks_.size()) return ranges_.tasks(axis, inside);
    ranges_.each(axis, [&](const Index& element) {
      point_[axis] = element;
      next_loop(i + 1);
    });
  }

  // The vectors that do not fill a block, and the elements that do not fill a vector, are blocks of their own.
  void blocks_of_columns(std::size_t i) {
    const std::int64_t lanes = s_.lanes, extent = axes_[lanes_].extent, vectors = extent / lanes, rest = extent % lanes,
                       left = vectors % s_.vectors;
    const auto block = [&](const Index& first, int width, std::int64_t valid_lanes) {
      first_column_ = first, width_ = width, valid_lanes_ = valid_lanes;
      next_loop(i + 1);
    };
    const bool parallel = i < tasks_.size();
    if (vectors > 0) {
      builder_.loop(Index(0), Index(vectors / s_.vectors), parallel ? Binding::threads : Binding::none,
                    [&](const Index& b) { block(b * s_.block(), s_.vectors, lanes); });
    }
    if (left + rest > 0 && parallel) builder_.next_phase();
    if (left > 0) block(Index((vectors - left) * lanes), static_cast<int>(left), lanes);
    if (left > 0 && rest > 0 && parallel && tasks_.size() > 1) builder_.next_phase();  // tasks have a phase alone
    if (rest > 0) block(Index(vectors * lanes), 1, rest);
  }

  // Reduced axes that are not lanes.
  void next_reduced(std::size_t i, const std::function<void()>& inner) {
    if (i == inner_.size() || inner_[i] == lanes_) return inner();
    const std::size_t axis = inner_[i];
    if (maxima_.active() && (axis == maxima_.row_axis() || axis == maxima_.column_axis())) return rows(inner);
    ranges_.each(axis, [&](const Index& element) {
      point_[axis] = element;
      next_reduced(i + 1, inner);
    });
  }
  // Rows of the task at hand, which finds the windows that reach into them from above for itself.
  void rows(const std::function<void()>& inner) {
    maxima_.enter(ranges_.first(maxima_.row_axis()), each_vector_);
    ranges_.each_in_copies(maxima_.row_axis(), maxima_.copies_of_rows(), [&](const Index& h) {
      maxima_.begin(h, each_vector_);
      maxima_.columns([&](const Index& w) {
        point_[maxima_.row_axis()] = h, point_[maxima_.column_axis()] = w;
        inner();
      });
    });
  }

  // The elements that are unrolled together, the point the first: of a window, whose maximum is found once.
  void each_unrolled(const std::function<void()>& inner) {
    if (s_.unroll.empty()) return inner();
    const std::vector<Index> first = point_;
    const auto all = [&] { unrolled_along(0, first, inner), point_ = first; };
    if (pooled_ < 0) return all();
    kernel_.move_to(point_);
    kernel_.expression().nested([&] {
      kernel_.expression().share_window(pooled_, kernel_.here());
      all();
    });
  }
  void unrolled_along(std::size_t axis, const std::vector<Index>& first, const std::function<void()>& inner) {
    if (axis == lanes_) return inner();
    unrolled(builder_, ranges_.unit(axis), [&](const Index& i) {
      point_[axis] = first[axis] + i;
      unrolled_along(axis + 1, first, inner);
    });
  }

  void first_of_reduced() {
    for (const std::size_t axis : reduced_) point_[axis] = ranges_.first(axis);
  }

  // Row-major position among the reduced elements, for argmax.
  Index flat() const {
    Index position = 0;
    for (std::size_t a = 0; a < axes_.size(); ++a) {
      if (axes_[a].reduced) position = position * axes_[a].extent + point_[a];
    }
    return position;
  }

  void visit(const Accumulators::State& state, const Index& column, Vectors vectors) {
    kernel_.move_to(point_);
    kernel_.expression().nested([&] {
      kernel_.store_all(accumulators_.expressions(), s_.stream ? vectors : Vectors::some);
      accumulators_.add(state, column, flat());
    });
  }

  static Arg literal(std::int64_t n) { return KernelBuilder::literal(static_cast<double>(n), DType::f64); }

  // Elements of the reduced axes that a task has for each kept element, in f64: vectors along an axis of lanes that
  // tasks share, which is the only one then; else without the lanes.
  Arg count() {
    std::int64_t whole = 1;
    for (const std::size_t axis : reduced_) whole *= is_cut(axis) ? ranges_.unit(axis) : axes_[axis].extent;
    if (cut_ < 0) return literal(whole);
    const Split& blocks = ranges_.of(static_cast<std::size_t>(cut_));
    if (blocks.even()) return literal(blocks.chunk * whole);
    return builder_.choose(
        {compare(part(), ir::CompareKind::lt, blocks.chunks - 1)}, {DType::f64},
        [&] { return std::vector<Arg>{literal(blocks.chunk * whole)}; },
        [&] { return std::vector<Arg>{literal(blocks.last() * whole)}; })[0];
  }

  void store_partial_or_finish(const std::vector<Arg>& state) {
    if (cut_ >= 0) {
      for (std::size_t c = 0; c < work_.size(); ++c)
        builder_.store(work_[c], partial_index(kernel_, part(), point_), state[c]);
      return;
    }
    kernel_.move_to(point_);
    kernel_.expression().nested([&] { accumulators_.finish(state, total_); });
  }

  // A block of columns, down all reduced axes of the task.
  void columns() {
    if (maxima_.active()) maxima_.declare(width_ * s_.lanes);
    if (next_.active() && maxima_.active())
      maxima_.beside([&](const Index& p, const Index& q) { fetch_windows(p, q); });
    one_vector(builder_, s_.lanes, valid_lanes_, [&](const Index& lane) { column_block(lane); });
  }

  void fetch_windows(const Index& p, const Index& q) {
    std::vector<Index> first = point_;
    first[lanes_] = first_column_;
    next_.fetch(first, p, q, width_ * s_.lanes);
  }

  // Columns of rows below, or of windows.
  void fetch_ahead() {
    if (s_.fetch.dims.empty() || maxima_.active()) return;
    if (next_.active())  // rows, and columns side by side with them
      return fetch_windows(point_[fetched_axis_] / s_.unroll[0].count, point_[fetched_axis_ + 1] / s_.unroll[1].count);
    std::vector<Index> below = point_;
    Index& along = below[fetched_axis_];
    along = along + s_.fetch.count;
    below[lanes_] = first_column_;
    kernel_.prefetch_streams(below, width_ * s_.lanes);
  }

  void column_block(const Index& lane) {
    const auto move = [&](const Index& column) { point_[lanes_] = first_column_ + lane + column * s_.lanes; };
    const Accumulators::State state = accumulators_.open(width_, [&](const Index& column) {
      first_of_reduced();
      move(column);
      kernel_.move_to(point_);
    });
    const auto each = [&](const std::function<void(Index)>& inner) { unrolled(builder_, width_, inner); };
    const auto channel = [&](const Index& column) { return lane + column * s_.lanes; };
    each_vector_ = [&](const std::function<void(const Index&)>& inner) {
      each([&](const Index& column) {
        move(column);
        kernel_.move_to(point_);
        inner(channel(column));
      });
    };
    const Vectors filled = valid_lanes_ == s_.lanes ? Vectors::whole : Vectors::some;
    next_reduced(0, [&] {
      fetch_ahead();
      each([&](const Index& column) {
        move(column);
        if (maxima_.active()) maxima_.use(channel(column));
        each_unrolled([&] { visit(state, column, filled); });
      });
    });
    each([&](const Index& column) {
      move(column);
      store_partial_or_finish(accumulators_.partial(state, column, count()));
    });
  }

  // The lane axis is reduced: every lane walks its share of all reduced axes, then the lanes meet in a tree.
  void row() {
    const std::int64_t lanes = s_.lanes, vectors = axes_[lanes_].extent / lanes, rest = axes_[lanes_].extent % lanes;
    const bool cuts_lanes = is_cut(lanes_), is_long = !s_.flush.dims.empty();
    const std::vector<ir::ValueId> state = builder_.reduce(
        {Index(0)}, {Index(lanes)}, Binding::vector, accumulators_.combiners(), accumulators_.types(), [&](Index lane) {
          const Accumulators::State running = accumulators_.open_independent(s_.vectors, [&] {
            first_of_reduced();
            point_[lanes_] = ranges_.first(lanes_);
            kernel_.move_to(point_);
          });
          const auto visit_vector = [&](const Index& vector, Vectors filled, const Index& chain) {
            point_[lanes_] = vector * lanes + lane;
            visit(running, chain, filled);
          };
          const std::function<void()> flush = [&] { accumulators_.flush(running); };
          next_reduced(0, [&] {
            if (cuts_lanes) {
              in_chunk([&](const Index& vector) { visit_vector(vector, Vectors::whole, Index(0)); }, flush);
            } else {
              in_trips(
                  vectors,
                  [&](const Index& vector, const Index& chain) { visit_vector(vector, Vectors::whole, chain); },
                  is_long ? flush : std::function<void()>());
            }
            if (rest == 0) return;
            // `==` pins a single lane, so that one writer is provable.
            std::vector<ir::Compare> tail{rest == 1 ? compare(lane, ir::CompareKind::eq, 0)
                                                    : compare(lane, ir::CompareKind::lt, rest)};
            if (cuts_lanes) tail.push_back(compare(part(), ir::CompareKind::eq, parts() - 1));
            builder_.when(tail, [&] { visit_vector(Index(vectors), Vectors::some, Index(0)); });
          });
          accumulators_.join(running, s_.vectors);
          return accumulators_.partial(running, Index(0), lane_count(lane, vectors, rest));
        });
    store_partial_or_finish(std::vector<Arg>(state.begin(), state.end()));
  }

  // Vectors of the task at hand.
  void in_chunk(const std::function<void(Index)>& body, const std::function<void()>& flush) {
    const Split& chunks = ranges_.of(lanes_);
    if (s_.flush.dims.empty()) return loop_chunk(builder_, chunks, part(), body);
    loop_chunk_in_blocks(builder_, chunks, part(), s_.flush.count / s_.lanes, body, flush);
  }

  // Vectors in turn, some in one trip: so many cache lines are on their way at once, and as many independent
  // accumulators. `flush` after each block of terms, if it is given.
  void in_trips(std::int64_t vectors, const std::function<void(Index, Index)>& body,
                const std::function<void()>& flush) {
    const std::int64_t turns = s_.unroll.empty() ? 1 : s_.unroll[0].count, trip = turns * s_.vectors;
    const auto one_trip = [&](const Index& number) {
      const Index first = number * trip;
      if (!s_.fetch.dims.empty()) {
        point_[lanes_] = first * s_.lanes + s_.fetch.count;
        kernel_.prefetch_streams(point_, trip * s_.lanes);
      }
      unrolled(builder_, turns, [&](const Index& turn) {
        unrolled(builder_, s_.vectors, [&](const Index& chain) { body(first + turn * s_.vectors + chain, chain); });
      });
    };
    const std::int64_t trips = vectors / trip;
    if (flush) {
      loop_in_blocks(builder_, trips, s_.flush.count / (trip * s_.lanes), one_trip, flush);
    } else if (trips > 0) {
      builder_.loop(Index(0), Index(trips), Binding::none, one_trip);
    }
    if (trips * trip < vectors)
      builder_.loop(Index(trips * trip), Index(vectors), Binding::none,
                    [&](const Index& vector) { body(vector, Index(0)); });
  }

  // Elements that one lane adds, in f64.
  Arg lane_count(const Index& lane, std::int64_t vectors, std::int64_t rest) {
    const auto choose = [&](std::vector<ir::Compare> when, Arg yes, Arg no) -> Arg {
      return builder_.choose(
          when, {DType::f64}, [&] { return std::vector<Arg>{yes}; }, [&] { return std::vector<Arg>{no}; })[0];
    };
    const Arg units = count();
    if (is_cut(lanes_)) {
      if (rest == 0) return units;
      const Arg longer = builder_.def(Op::add, {units, literal(1)}, DType::f64);
      return choose({compare(lane, ir::CompareKind::lt, rest), compare(part(), ir::CompareKind::eq, parts() - 1)},
                    longer, units);
    }
    if (rest == 0) return builder_.def(Op::mul, {units, literal(vectors)}, DType::f64);
    const Arg per_lane = choose({compare(lane, ir::CompareKind::lt, rest)}, literal(vectors + 1), literal(vectors));
    return builder_.def(Op::mul, {units, per_lane}, DType::f64);
  }

  GroupKernel& kernel_;
  KernelBuilder& builder_;
  const Schedule& s_;
  const std::vector<DomainAxis>& axes_;
  const std::size_t lanes_;
  Ranges ranges_;
  Accumulators accumulators_;
  KeptMaxima maxima_;  // of a max_pool2d_grad whose windows overlap
  const int pooled_;   // a max_pool2d_grad whose windows are walked one by one
  NextWindows next_;   // of either
  const std::vector<std::size_t> tasks_;
  std::vector<std::size_t> outer_;  // tasks, and loops over what is kept
  const std::vector<std::size_t> inner_;
  std::vector<std::size_t> reduced_;  // without the lanes
  std::size_t fetched_axis_ = 0;
  int cut_ = -1;  // the reduced axis that tasks share
  std::int64_t total_ = 1;
  std::vector<Index> point_;
  Index first_column_ = 0;  // of a block, how many vectors, how many lanes of each
  int width_ = 1;
  std::int64_t valid_lanes_ = 0;
  KeptMaxima::EachVector each_vector_;
  std::vector<ir::MemId> work_;
};

}  // namespace

void build_reduction(GroupKernel& kernel, const GroupDomain& of, const Schedule& schedule) {
  FJ_ASSERT(!of.domain.axes.empty(), "a reduction over one element has an axis");
  Reducer(kernel, of, schedule).emit();
}

}  // namespace fusejit::scheduler
