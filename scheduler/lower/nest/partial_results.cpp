// Partial results of a contraction: what tasks leave in memory where a sum is cut, and the phase that adds them up in
// ascending order and computes what the group stores.
#include <algorithm>
#include <utility>

#include "ir/ops/geometry/window.h"
#include "scheduler/lower/cuda/parts.h"
#include "scheduler/lower/cuda/threads.h"
#include "scheduler/lower/nest/build.h"
#include "scheduler/lower/split.h"
#include "scheduler/lower/tuning.h"

namespace fusejit::scheduler {

using ir::Arg;
using ir::Binding;
using ir::CompareKind;
using ir::Index;

std::vector<int> ContractionLoops::partial_dims() const {
  std::vector<int> dims;
  for (std::size_t i = 0; i < c_.dims.size(); ++i)
    if (const int d = static_cast<int>(i); d != vector_ && c_.dims[i].extent > 1 && !c_.dims[i].reduced)
      dims.push_back(d);
  return dims;
}

std::int64_t ContractionLoops::blocks_of_vectors() const { return ir::ceil_divide(of_task(vector_).size, s_.block()); }

// [part, blocks of the vector's dim, the other parallel dims, what a block holds], so that a tile's results lie side by
// side; between threads, which lie side by side along the vector's dim, that is one block.
std::vector<std::int64_t> ContractionLoops::partial_extents() const {
  std::vector<std::int64_t> dims{parts()};
  if (!s_.by_threads()) dims.push_back(blocks_of_vectors());
  for (const int d : partial_dims()) dims.push_back(of_task(d).size);
  const std::int64_t together = s_.lanes_together();
  dims.push_back(s_.by_threads() ? ir::ceil_divide(contraction_dim(vector_).extent, together) * together : s_.block());
  return dims;
}

void ContractionLoops::declare_partial_results() { partials_ = builder_.work(compute_, partial_extents()); }

std::vector<Index> ContractionLoops::partial_place(const Index& part, const Index& block, const Index& in_block) const {
  std::vector<Index> place{part};
  if (!s_.by_threads()) place.push_back(task_.empty() ? block : block - of_task(vector_).base / s_.block());
  for (const int d : partial_dims()) place.push_back(at(d) - of_task(d).base);
  place.push_back(s_.by_threads() ? block * s_.block() + in_block : in_block);
  return place;
}

// All results of a task are finished there: none is a part of one, and they fit into its scratch beside panels. Not
// where lanes are idle: beside groups, which have copies of the phase (combine()), or at the end of a task's share of
// what they run along, of which it would not be provable that no other task has it.
bool ContractionLoops::combines_in_tasks() const {
  if (s_.combine.empty() || s_.by_threads() || parts() > 1) return false;
  for (const ScheduledLoop& task : s_.tasks)  // blocks of combinations are no range of each of their dims
    if (task.dims.size() > 1 && task.step > 0) return false;
  std::int64_t results = bytes(compute_) * s_.block();
  results *= ir::ceil_divide(left_by_tasks(vector_), s_.block());
  for (const int d : partial_dims()) {
    if (has_idle_lanes() && c_.lies_behind(d, vector_)) return false;
    results *= left_by_tasks(d);
  }
  std::int64_t lanes = 1, all = 1;  // side by side, of a task and of all
  for (const std::string& name : s_.combine) lanes *= left_by_tasks(c_.find(name)), all *= c_.dim(name).extent;
  const bool cut = lanes < all && s_.combine != std::vector{s_.vector};
  return results <= tuning::kMostResultsOfTask && (!cut || lanes % s_.lanes == 0);
}

// Of a dim, in each of them.
std::int64_t ContractionLoops::left_by_tasks(int d) const {
  const std::string& name = contraction_dim(d).name;
  std::int64_t left = contraction_dim(d).extent;
  for (const ScheduledLoop& task : s_.tasks)
    if (std::find(task.dims.begin(), task.dims.end(), name) != task.dims.end())
      left = std::min(left, task.step > 0 ? task.step : s_.held(name));
  return left;
}

void ContractionLoops::in_task(std::vector<OfTask> dims, const std::function<void()>& body) {
  task_ = std::move(dims);
  partials_ = builder_.local(ir::MemKind::scratch_local, compute_, partial_extents());
  body();
  combine();
  task_.clear();
}

// Lanes run along what lies close together in what is stored; with lanes along another dim they would be rows apart.
void ContractionLoops::combine() {
  std::vector<int> along;
  for (const std::string& name : s_.combine) along.push_back(c_.find(name));
  const bool by_vector = along == std::vector{vector_};
  const std::vector<int> dims = partial_dims();
  const bool may_share =
      task_.empty() && !dims.empty() && dims.back() > vector_ && !c_.share_index(dims.back(), vector_);
  const int shared = by_vector && may_share ? dims.back() : -1;
  // A phase each, where its lanes are idle in the last block: of a loop over groups it would not be provable that each
  // output has one writer. One of the others is a loop of tasks.
  std::vector<int> copied, tasks, inside;
  for (const int d : dims) {
    if (d == shared || std::find(along.begin(), along.end(), d) != along.end()) continue;
    (!task_.empty()                                   ? inside
     : c_.lies_behind(d, vector_) && has_idle_lanes() ? copied
     : d < vector_ && tasks.empty()                   ? tasks
                                                      : inside)
        .push_back(d);
  }
  const auto blocks = [&] { by_vector ? combine_by_vector(shared, inside) : combine_across(along, inside); };
  const std::function<void(std::size_t)> over_copies = [&](std::size_t n) {
    if (n < copied.size()) {
      for (std::int64_t i = 0; i < contraction_dim(copied[n]).extent; ++i)
        with_element(copied[n], Index(i), [&] { over_copies(n + 1); });
      return;
    }
    if (task_.empty()) builder_.next_phase();
    if (tasks.empty()) return blocks();
    parallel(builder_, contraction_dim(tasks[0]).extent,
             [&](Index i) { with_element(tasks[0], i, [&] { blocks(); }); });
  };
  over_copies(0);
}

// The parts of the result at hand, added up in ascending order, and what the group makes of them.
void ContractionLoops::finish_parts(const Index& block, const Index& in_block) {
  const std::vector<ir::ValueId> sum = builder_.reduce(
      {Index(0)}, {Index(parts())}, Binding::none, {ir::Combiner::add}, {compute_},
      [&](Index part) { return std::vector<Arg>{builder_.load(partials_, partial_place(part, block, in_block))}; });
  store_results(sum[0]);
}

void ContractionLoops::over_dims(const std::vector<int>& dims, std::size_t n, const std::function<void()>& body) {
  if (n == dims.size()) return body();
  const OfTask all = of_task(dims[n]);
  serial(builder_, all.size,
         [&](Index i) { with_element(dims[n], all.base + i, [&] { over_dims(dims, n + 1, body); }); });
}

// `units` shared out to the tasks of every block of vectors; all of them, where a task has them.
void ContractionLoops::over_blocks_of_vectors(
    std::int64_t units, const std::function<void(const Index& block, const Split& tasks, const Index& chunk)>& body) {
  const std::int64_t blocks = blocks_of_vectors();
  if (!task_.empty()) {
    const OfTask all = of_task(vector_);
    std::vector<Index> high{Index(blocks)};
    if (all.limited) high.push_back((Index(contraction_dim(vector_).extent + s_.block() - 1) - all.base) / s_.block());
    const auto one = [&](const Index& i) { body(all.base / s_.block() + i, {units, units, 1}, 0); };
    return blocks == 1 ? one(0) : builder_.loop({Index(0)}, high, Binding::none, one);
  }
  const Split tasks = split(units, ir::ceil_divide(std::int64_t{kernel_.context().target.tasks}, blocks));
  parallel(builder_, blocks,
           [&](Index block) { parallel(builder_, tasks.chunks, [&](Index chunk) { body(block, tasks, chunk); }); });
}

// Lanes along the vector's dim, as partial results lie.
void ContractionLoops::combine_by_vector(int shared, const std::vector<int>& inside) {
  const std::int64_t lanes = s_.lanes;
  const auto vectors = [&](const Index& block) {
    over_dims(inside, 0, [&] {
      unrolled(builder_, s_.vectors, [&](Index j) {
        builder_.loop(Index(0), Index(lanes), Binding::vector, [&](Index lane) {
          vector_at_ = block * s_.block() + j * lanes + lane;
          valid_lanes([&] { finish_parts(block, j * lanes + lane); });
        });
      });
    });
  };
  if (shared < 0 && task_.empty()) return parallel(builder_, blocks_of_vectors(), vectors);
  if (shared < 0)
    return over_blocks_of_vectors(1, [&](const Index& block, const Split&, const Index&) { vectors(block); });
  over_blocks_of_vectors(
      contraction_dim(shared).extent, [&](const Index& block, const Split& tasks, const Index& chunk) {
        loop_chunk(builder_, tasks, chunk, [&](Index unit) { with_element(shared, unit, [&] { vectors(block); }); });
      });
}

// Lanes along combinations of other dims, across the vectors that partial results lie in: a square of both at a time,
// so that an emitter reads whole vectors of them and turns the square in registers.
void ContractionLoops::combine_across(const std::vector<int>& along, const std::vector<int>& inside) {
  const std::int64_t lanes = s_.lanes, square = std::min<std::int64_t>(lanes, s_.block());
  std::vector<std::int64_t> extents;
  std::int64_t together = 1;
  for (const int d : along) extents.push_back(of_task(d).size), together *= extents.back();
  const auto at_lane = [&](const Index& unit, const Index& lane, const std::function<void()>& body) {
    const Index i = unit * lanes + lane;
    const std::vector<Index> at = cuda::decode(i, extents);
    const std::function<void(std::size_t)> set = [&](std::size_t n) {
      n == along.size() ? body() : with_element(along[n], of_task(along[n]).base + at[n], [&] { set(n + 1); });
    };
    if (together % lanes == 0) return set(0);
    builder_.when({compare(i, CompareKind::lt, together)}, [&] { set(0); });
  };
  const auto one_by_one = [&](const Index& block, const Index& unit) {
    serial(builder_, s_.block(), [&](Index in_block) {
      vector_at_ = block * s_.block() + in_block;
      builder_.when({compare(vector_at_, CompareKind::lt, contraction_dim(vector_).extent)}, [&] {
        over_dims(inside, 0, [&] {
          builder_.loop(Index(0), Index(lanes), Binding::vector,
                        [&](Index lane) { at_lane(unit, lane, [&] { finish_parts(block, in_block); }); });
        });
      });
    });
  };
  const auto in_squares = [&](const Index& block, const Index& first, const Index& unit, const Index& lane) {
    const ir::MemId sums = builder_.local(ir::MemKind::register_local, compute_, {square}, 0);
    serial(builder_, parts(), [&](Index part) {
      unrolled(builder_, square, [&](Index j) {
        at_lane(unit, lane, [&] {
          const Arg one = builder_.load(partials_, partial_place(part, block, first + j));
          builder_.store(sums, {j}, builder_.def(ir::Op::add, {builder_.load(sums, {j}), one}, compute_));
        });
      });
    });
    unrolled(builder_, square, [&](Index j) {
      vector_at_ = block * s_.block() + first + j;
      at_lane(unit, lane, [&] { store_results(builder_.load(sums, {j})); });
    });
  };
  over_blocks_of_vectors(
      ir::ceil_divide(together, lanes), [&](const Index& block, const Split& tasks, const Index& chunk) {
        if (has_idle_lanes()) return loop_chunk(builder_, tasks, chunk, [&](Index unit) { one_by_one(block, unit); });
        over_dims(inside, 0, [&] {
          serial(builder_, s_.block() / square, [&](Index part_of_block) {
            loop_chunk(builder_, tasks, chunk, [&](Index unit) {
              builder_.loop(Index(0), Index(lanes), Binding::vector,
                            [&](Index lane) { in_squares(block, part_of_block * square, unit, lane); });
            });
          });
        });
      });
}

// A thread an element, in the order of the schedule.
void ContractionLoops::combine_by_threads() {
  std::vector<int> dims;
  std::vector<std::int64_t> extents;
  std::int64_t elements = 1;
  for (const std::string& name : s_.combine) {
    dims.push_back(c_.find(name));
    extents.push_back(contraction_dim(dims.back()).extent);
    elements *= extents.back();
  }
  const auto at_element = [&](const Index& element, const std::function<void()>& body) {
    const std::vector<Index> at = cuda::decode(element, extents);
    const std::function<void(std::size_t)> set = [&](std::size_t n) {
      if (n == dims.size()) return body();
      if (dims[n] == vector_) vector_at_ = at[n];
      with_element(dims[n], at[n], [&] { set(n + 1); });
    };
    set(0);
  };
  cuda::JoiningSums joining{elements, parts(), compute_, {}, {}};
  joining.load = [&](const Index& part, const Index& element) {
    ir::ValueId loaded = -1;
    at_element(element, [&] { loaded = builder_.load(partials_, partial_place(part, 0, vector_at_)); });
    return loaded;
  };
  joining.done = [&](const Index& element, const Arg& sum) { at_element(element, [&] { store_results(sum); }); };
  cuda::join_sums(kernel_, joining);
}

}  // namespace fusejit::scheduler
