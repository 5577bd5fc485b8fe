// Groups with reductions: one pass over the domain adds every element to accumulators and stores what is stored on the
// way; partial states of parallel tasks meet in `work`, and a second phase combines them in a fixed order.
//
// The last axis runs in lanes. If it is kept, a block of columns walks down the reduced axes; if it is reduced, lanes
// meet in a tree. How many tasks split a reduced axis depends on shape and target only.
#include <algorithm>

#include "ir/base/check.h"
#include "scheduler/lower/accumulator.h"
#include "scheduler/lower/expression/kept_maxima.h"
#include "scheduler/lower/loops.h"
#include "scheduler/lower/partials.h"
#include "scheduler/lower/split.h"

namespace fusejit::scheduler {

using ir::Arg;
using ir::Binding;
using ir::Index;
using ir::KernelBuilder;
using ir::Op;

namespace {

constexpr std::int64_t kLeastTerms = 8;  // of a sum in a task
constexpr std::int64_t kSerialElements = 8192;
constexpr int kColumns = 4;       // vectors of a column block
constexpr int kVectorsATrip = 4;  // of a row
// How far ahead of the sums large values are fetched. Processors fetch ahead by themselves, but not from one page into
// the next.
constexpr std::int64_t kElementsAhead = 2048;

class Reducer {
 public:
  Reducer(GroupKernel& kernel, int overlapping)
      : kernel_(kernel),
        builder_(kernel.builder()),
        axes_(kernel.space().axes),
        accumulators_(kernel),
        maxima_(kernel, overlapping),
        point_(axes_.size()) {
    const std::size_t last = axes_.size() - 1;
    for (std::size_t a = 0; a < axes_.size(); ++a) {
      if (axes_[a].reduced) total_ *= axes_[a].extent;
      if (a == last) continue;
      (axes_[a].reduced ? reduced_ : kept_).push_back(a);
    }
    lane_axis_ = last;
    steps_.assign(axes_.size(), 1);
    plan_tasks();
    plan_windows();
    plan_long_sums();
  }

  void emit() {
    if (tasks_.chunks > 1) work_ = declare_partials(kernel_, accumulators_, tasks_.chunks);
    if (tasks_.chunks > 1) {
      builder_.loop(Index(0), Index(tasks_.chunks), Binding::threads, [&](Index z) { task_ = z, kept_tasks(); });
      combine_partials(kernel_, accumulators_, work_, tasks_.chunks, total_);
    } else {
      kept_tasks();
    }
  }

 private:
  bool lanes_kept() const { return !axes_[lane_axis_].reduced; }
  std::int64_t lane_extent() const { return axes_[lane_axis_].extent; }

  // Splits the first reduced axis (or the vectors of the lane axis) if the kept axes give too few tasks.
  void plan_tasks() {
    const std::int64_t elements = kernel_.group().domain.elements();
    const std::int64_t wanted = elements < kSerialElements ? 1 : kernel_.context().target.tasks;
    std::int64_t kept = 1;
    for (const std::size_t a : kept_) kept *= axes_[a].extent;
    if (lanes_kept() && kept_.empty()) kept *= std::max<std::int64_t>(1, lane_extent() / (kernel_.lanes() * kColumns));
    parallel_kept_ = wanted > 1 && kept * 2 > wanted;
    const std::int64_t parts = parallel_kept_ ? 1 : (wanted + kept - 1) / kept;
    const std::int64_t units = !reduced_.empty() ? axes_[reduced_[0]].extent
                               : lanes_kept()    ? 1
                                                 : lane_extent() / kernel_.lanes();
    std::int64_t in_unit = 1;  // of each independent sum
    for (std::size_t i = 1; i < reduced_.size(); ++i) in_unit *= axes_[reduced_[i]].extent;
    tasks_ = split(units, std::min({parts, units, std::max<std::int64_t>(1, units * in_unit / kLeastTerms)}));
  }

  // Rows whose sums would be long: their vectors go in blocks.
  void plan_long_sums() {
    if (lanes_kept() || vectors_in_row() < kVectorsATrip) return;
    std::int64_t terms = splits_lanes() ? tasks_.chunk : vectors_in_row() / independent_in_row();
    for (std::size_t i = 0; i < reduced_.size(); ++i)
      terms *= i == 0 && tasks_.chunks > 1 ? tasks_.chunk : axes_[reduced_[i]].extent;
    accumulators_.expect_terms(terms);
    if (accumulators_.has_long_sums() && splits_lanes()) tasks_ = in_blocks(tasks_, kBlockTerms);
  }
  std::int64_t vectors_in_row() const { return lane_extent() / kernel_.lanes(); }
  bool splits_lanes() const { return reduced_.empty() && tasks_.chunks > 1; }
  int independent_in_row() const {
    const bool trips = !splits_lanes() && vectors_in_row() >= 2 * kVectorsATrip;
    return trips ? accumulators_.most_independent(kVectorsATrip) : 1;
  }

  // Rows and columns of an image with a pooling gradient go by windows, so that each maximum is found once.
  void plan_windows() {
    if (!lanes_kept() || maxima_.active()) return;
    for (const auto* list : {&kernel_.group().inner, &kernel_.group().stores}) {
      for (const int id : *list) {
        const ir::Node& node = *kernel_.graph().value(id);
        if (pooled_ < 0 && node.op == Op::max_pool2d_grad) step_by_windows(id, node);
      }
    }
  }
  void step_by_windows(int id, const ir::Node& node) {
    std::vector<std::int64_t> steps(axes_.size(), 1);
    for (const std::size_t d : {0u, 1u}) {
      const Window window = pooled_window(node, static_cast<int>(d));
      const int dim = static_cast<int>(d) + 2;
      const auto axis = std::find_if(reduced_.begin(), reduced_.end(),
                                     [&](std::size_t a) { return axes_[a].dims == std::vector<int>{dim}; });
      if (!window.tiles() || window.in % window.stride != 0 || axis == reduced_.end()) return;
      if (axis == reduced_.begin() && tasks_.chunks > 1) return;  // its chunks are not whole windows
      steps[*axis] = window.stride;
    }
    pooled_ = id, steps_ = std::move(steps);
  }

  // Loops over the kept axes that are not lanes; the first one is parallel if no reduced axis is split.
  void kept_tasks() {
    const bool parallel = parallel_kept_ && !kept_.empty();
    if (!parallel) return kept_axes(0, [&] { body(); });
    const Split chunks = split(axes_[kept_[0]].extent, kernel_.context().target.tasks);
    builder_.loop(Index(0), Index(chunks.chunks), Binding::threads, [&](Index task) {
      loop_chunk(builder_, chunks, task, [&](Index i) {
        point_[kept_[0]] = i;
        kept_axes(1, [&] { body(); });
      });
    });
  }

  void kept_axes(std::size_t next, const std::function<void()>& inner) {
    if (next == kept_.size()) return inner();
    builder_.loop(Index(0), Index(axes_[kept_[next]].extent), Binding::none, [&](Index i) {
      point_[kept_[next]] = i;
      kept_axes(next + 1, inner);
    });
  }

  void body() { lanes_kept() ? columns() : rows(); }

  // Reduced axes that are not lanes, ascending; the first one only over this task's chunk.
  void reduced_axes(std::size_t next, const std::function<void()>& inner) {
    if (next == reduced_.size()) return inner();
    const std::int64_t by = steps_[reduced_[next]];
    const auto step = [&](Index i) {
      point_[reduced_[next]] = i * by;
      reduced_axes(next + 1, inner);
    };
    const bool by_windows = maxima_.active() && reduced_[next] >= maxima_.row_axis();
    if (by_windows && reduced_[next] == maxima_.column_axis()) return maxima_.columns(step);
    if (by_windows) maxima_.enter(next == 0 ? first_unit() : Index(0), each_vector_);
    const auto row = [&](const Index& i) {
      if (by_windows) maxima_.begin(i, each_vector_);
      step(i);
    };
    if (next == 0 && tasks_.chunks > 1) return loop_chunk(builder_, tasks_, task_, row);
    builder_.loop(Index(0), Index(axes_[reduced_[next]].extent / by), Binding::none, row);
  }
  // Of the first reduced axis: where this task begins.
  Index first_unit() const { return tasks_.chunks > 1 ? task_ * tasks_.chunk : Index(0); }

  // The pixels of a window whose first one is the point.
  void each_pixel(const std::function<void()>& inner) {
    if (pooled_ < 0) return inner();
    kernel_.move_to(point_);
    kernel_.expression().nested([&] {
      kernel_.expression().share_window(pooled_, kernel_.here());
      const std::vector<Index> first = point_;
      pixels_along(0, first, inner);
      point_ = first;
    });
  }
  void pixels_along(std::size_t axis, const std::vector<Index>& first, const std::function<void()>& inner) {
    if (axis == axes_.size()) return inner();
    unrolled(builder_, steps_[axis], [&](Index i) {
      point_[axis] = first[axis] + i;
      pixels_along(axis + 1, first, inner);
    });
  }

  void first_of_reduced() {
    for (std::size_t i = 0; i < reduced_.size(); ++i) {
      point_[reduced_[i]] = i == 0 ? first_unit() : Index(0);
    }
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
      kernel_.store_all(accumulators_.expressions(), vectors);
      accumulators_.add(state, column, flat());
    });
  }

  // Elements that a task adds for each kept element, reduced axes without lanes only.
  Arg count(std::int64_t per_unit) {
    const auto literal = [&](std::int64_t units) {
      return KernelBuilder::literal(static_cast<double>(units * per_unit), DType::f64);
    };
    if (tasks_.chunks <= 1) return literal(tasks_.count);
    if (tasks_.even()) return literal(tasks_.chunk);
    return builder_.choose(
        {compare(task_, ir::CompareKind::lt, tasks_.chunks - 1)}, {DType::f64},
        [&] { return std::vector<Arg>{literal(tasks_.chunk)}; },
        [&] { return std::vector<Arg>{literal(tasks_.last())}; })[0];
  }

  void store_partial_or_finish(const std::vector<Arg>& state) {
    if (tasks_.chunks > 1) {
      for (std::size_t c = 0; c < work_.size(); ++c)
        builder_.store(work_[c], partial_index(kernel_, task_, point_), state[c]);
      return;
    }
    kernel_.move_to(point_);
    kernel_.expression().nested([&] { accumulators_.finish(state, total_); });
  }

  void columns() {
    const std::int64_t lanes = kernel_.lanes(), vectors = lane_extent() / lanes, rest = lane_extent() % lanes;
    const std::int64_t blocks = vectors / kColumns, left = vectors % kColumns;
    const auto binding = parallel_kept_ && kept_.empty() ? Binding::threads : Binding::none;
    if (blocks > 0) {
      builder_.loop(Index(0), Index(blocks), binding, [&](Index b) {
        if (maxima_.active()) maxima_.declare(kColumns * lanes);
        builder_.loop(Index(0), Index(lanes), Binding::vector,
                      [&](Index lane) { column_block(b * (kColumns * lanes), lane, kColumns, Vectors::whole); });
      });
    }
    if ((left > 0 || rest > 0) && blocks > 0 && binding == Binding::threads) builder_.next_phase();
    const Index start = blocks * kColumns * lanes;
    if (left > 0) {
      if (maxima_.active()) maxima_.declare(left * lanes);
      builder_.loop(Index(0), Index(lanes), Binding::vector,
                    [&](Index lane) { column_block(start, lane, static_cast<int>(left), Vectors::whole); });
    }
    if (rest > 0) {
      if (maxima_.active()) maxima_.declare(lanes);
      one_vector(builder_, static_cast<int>(lanes), rest,
                 [&](Index lane) { column_block(Index(vectors * lanes), lane, 1, Vectors::some); });
    }
  }

  // Columns of rows below.
  void fetch_ahead(const Index& first, int width) {
    if (reduced_.empty()) return;
    std::vector<Index> below = point_;
    below[reduced_.back()] = below[reduced_.back()] + std::max<std::int64_t>(1, kElementsAhead / lane_extent());
    below[lane_axis_] = first;
    kernel_.prefetch_streams(below, width * kernel_.lanes());
  }

  // `width` vectors of columns from `first`, down all reduced axes of the task.
  void column_block(const Index& first, const Index& lane, int width, Vectors vectors) {
    const auto move = [&](const Index& column) { point_[lane_axis_] = first + lane + column * kernel_.lanes(); };
    const Accumulators::State state = accumulators_.open(width, [&](const Index& column) {
      first_of_reduced();
      move(column);
      kernel_.move_to(point_);
    });
    const auto each = [&](const std::function<void(Index)>& inner) {
      if (width == 1) return inner(Index(0));
      builder_.loop(Index(0), Index(width), Binding::unroll, inner);
    };
    const auto channel = [&](const Index& column) { return lane + column * kernel_.lanes(); };
    each_vector_ = [&](const std::function<void(const Index&)>& inner) {
      each([&](Index column) {
        move(column);
        kernel_.move_to(point_);
        inner(channel(column));
      });
    };
    reduced_axes(0, [&] {
      if (pooled_ < 0) fetch_ahead(first, width);
      each([&](Index column) {
        move(column);
        if (maxima_.active()) maxima_.use(channel(column));
        each_pixel([&] { visit(state, column, vectors); });
      });
    });
    std::int64_t per_unit = 1;
    for (std::size_t i = 1; i < reduced_.size(); ++i) per_unit *= axes_[reduced_[i]].extent;
    each([&](Index column) {
      move(column);
      store_partial_or_finish(accumulators_.partial(state, column, count(per_unit)));
    });
  }

  // The lane axis is reduced: every lane walks its share of all reduced axes, then the lanes meet in a tree.
  void rows() {
    const std::int64_t lanes = kernel_.lanes(), vectors = lane_extent() / lanes, rest = lane_extent() % lanes;
    const bool split_lanes = splits_lanes(), is_long = accumulators_.has_long_sums();
    const bool trips = !split_lanes && vectors >= 2 * kVectorsATrip;
    const int parts = independent_in_row();
    const std::vector<ir::ValueId> state = builder_.reduce(
        {Index(0)}, {Index(lanes)}, Binding::vector, accumulators_.combiners(), accumulators_.types(), [&](Index lane) {
          const Accumulators::State running = accumulators_.open_independent(parts, [&] {
            first_of_reduced();
            point_[lane_axis_] = split_lanes ? task_ * (tasks_.chunk * lanes) : Index(0);
            kernel_.move_to(point_);
          });
          const auto visit_vector = [&](const Index& vector, Vectors filled, const Index& part) {
            point_[lane_axis_] = vector * lanes + lane;
            visit(running, part, filled);
          };
          const auto at_vector = [&](const Index& vector) { visit_vector(vector, Vectors::whole, Index(0)); };
          const auto flush = [&] { accumulators_.flush(running); };
          reduced_axes(0, [&] {
            if (split_lanes && is_long) {
              loop_chunk_in_blocks(builder_, tasks_, task_, kBlockTerms, at_vector, flush);
            } else if (split_lanes) {
              loop_chunk(builder_, tasks_, task_, at_vector);
            } else {
              const std::int64_t first = trips ? vectors / kVectorsATrip * kVectorsATrip : 0;
              if (trips) {
                several_vectors(
                    first, parts,
                    [&](const Index& vector, const Index& part) { visit_vector(vector, Vectors::whole, part); },
                    is_long ? flush : std::function<void()>());
              }
              if (first < vectors) builder_.loop(Index(first), Index(vectors), Binding::none, at_vector);
            }
            if (rest == 0) return;
            // `==` pins a single lane, so that one writer is provable.
            std::vector<ir::Compare> tail{rest == 1 ? compare(lane, ir::CompareKind::eq, 0)
                                                    : compare(lane, ir::CompareKind::lt, rest)};
            if (split_lanes) tail.push_back(compare(task_, ir::CompareKind::eq, tasks_.chunks - 1));
            builder_.when(tail, [&] { visit_vector(Index(vectors), Vectors::some, Index(0)); });
          });
          accumulators_.join(running, parts);
          return accumulators_.partial(running, Index(0), lane_count(lane, split_lanes, vectors, rest));
        });
    store_partial_or_finish(std::vector<Arg>(state.begin(), state.end()));
  }

  // Vectors in turn, a few in one trip: so many cache lines are on their way at once, and as many sums as there are
  // parts. `flush` after each block of terms, if it is given.
  void several_vectors(std::int64_t vectors, int parts, const std::function<void(Index, Index)>& body,
                       const std::function<void()>& flush) {
    const auto one_trip = [&](Index trip) {
      const Index first = trip * kVectorsATrip;
      point_[lane_axis_] = first * kernel_.lanes() + kElementsAhead;
      kernel_.prefetch_streams(point_, kVectorsATrip * kernel_.lanes());
      builder_.loop(Index(0), Index(kVectorsATrip / parts), Binding::unroll, [&](Index turn) {
        builder_.loop(Index(0), Index(parts), Binding::unroll,
                      [&](Index part) { body(first + turn * parts + part, part); });
      });
    };
    const std::int64_t trips = vectors / kVectorsATrip;
    if (flush) return loop_in_blocks(builder_, trips, kBlockTerms * parts / kVectorsATrip, one_trip, flush);
    builder_.loop(Index(0), Index(trips), Binding::none, one_trip);
  }

  // Elements that one lane adds, in f64.
  Arg lane_count(const Index& lane, bool split_lanes, std::int64_t vectors, std::int64_t rest) {
    std::int64_t outer = 1;
    for (std::size_t i = 1; i < reduced_.size(); ++i) outer *= axes_[reduced_[i]].extent;
    const auto choose = [&](std::vector<ir::Compare> when, Arg yes, Arg no) -> Arg {
      return builder_.choose(
          when, {DType::f64}, [&] { return std::vector<Arg>{yes}; }, [&] { return std::vector<Arg>{no}; })[0];
    };
    const auto literal = [](std::int64_t n) { return KernelBuilder::literal(static_cast<double>(n), DType::f64); };
    if (split_lanes) {
      Arg n = count(1);
      if (rest == 0) return n;
      const Arg longer = builder_.def(Op::add, {n, literal(1)}, DType::f64);
      return choose({compare(lane, ir::CompareKind::lt, rest), compare(task_, ir::CompareKind::eq, tasks_.chunks - 1)},
                    longer, n);
    }
    const Arg units = reduced_.empty() ? literal(1) : count(outer);
    if (rest == 0) return builder_.def(Op::mul, {units, literal(vectors)}, DType::f64);
    const Arg per_lane = choose({compare(lane, ir::CompareKind::lt, rest)}, literal(vectors + 1), literal(vectors));
    return builder_.def(Op::mul, {units, per_lane}, DType::f64);
  }

  GroupKernel& kernel_;
  KernelBuilder& builder_;
  const std::vector<Axis>& axes_;
  Accumulators accumulators_;
  KeptMaxima maxima_;  // of a max_pool2d_grad whose windows overlap
  std::vector<Index> point_;
  std::vector<std::size_t> reduced_, kept_;  // axes but the last
  std::size_t lane_axis_ = 0;
  std::int64_t total_ = 1;
  Split tasks_;
  bool parallel_kept_ = false;
  int pooled_ = -1;                  // a max_pool2d_grad whose windows are walked one by one
  std::vector<std::int64_t> steps_;  // by axis: pixels of a window, or 1
  KeptMaxima::EachVector each_vector_;
  Index task_ = 0;
  std::vector<ir::MemId> work_;
};

}  // namespace

void emit_reduction(GroupKernel& kernel, int overlapping) {
  FJ_ASSERT(!kernel.space().axes.empty(), "a reduction over one element has an axis");
  Reducer(kernel, overlapping).emit();
}

}  // namespace fusejit::scheduler
