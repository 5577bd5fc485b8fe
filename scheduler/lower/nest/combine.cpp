// Partial results of a contraction: what tasks leave in memory where a sum is cut, and the phase that adds them up in
// ascending order and computes what the group stores.
#include <algorithm>
#include <utility>

#include "ir/ops/geometry/window.h"
#include "scheduler/lower/cuda/parts.h"
#include "scheduler/lower/nest/nest.h"
#include "scheduler/lower/nest/pack.h"
#include "scheduler/lower/split.h"

namespace fusejit::scheduler {

using ir::Arg;
using ir::Binding;
using ir::CompareKind;
using ir::Index;
using ir::KernelBuilder;

std::vector<Index> Nest::packed_place(const Index& j) const {
  std::vector<Index> place;
  for (const int d : packed_apart(c_, s_)) place.push_back(at(d));
  const Index& first = range(vector_).base;
  place.push_back(first / s_.pack_b);
  for (std::size_t d = 0; d < c_.dims.size(); ++d)
    if (c_.dims[d].reduced) place.push_back(range(static_cast<int>(d)).base / terms_at_once(static_cast<int>(d)));
  place.push_back(first % s_.pack_b + j * s_.lanes + lane_);
  return place;
}

std::vector<int> Nest::partial_dims() const {
  std::vector<int> dims;
  for (std::size_t i = 0; i < c_.dims.size(); ++i)
    if (const int d = static_cast<int>(i); d != vector_ && c_.dims[i].extent > 1 && !c_.dims[i].reduced)
      dims.push_back(d);
  return dims;
}

// [part, parallel dims before the vector's, its blocks, those after it, what a block holds]; between threads, which lie
// side by side along the vector's dim, that is one block.
void Nest::declare_partial_results() {
  const std::int64_t blocks = ir::ceil_divide(dim(vector_).extent, s_.block());
  std::vector<std::int64_t> dims{parts()};
  bool done = by_threads_;
  for (const int d : partial_dims()) {
    if (d > vector_ && !std::exchange(done, true)) dims.push_back(blocks);
    dims.push_back(dim(d).extent);
  }
  if (!done) dims.push_back(blocks);
  const std::int64_t together = s_.lanes_together();
  dims.push_back(by_threads_ ? ir::ceil_divide(dim(vector_).extent, together) * together : s_.block());
  partials_ = builder_.work(compute_, dims);
}

std::vector<Index> Nest::partial_place(const Index& part, const Index& block, const Index& in_block) const {
  std::vector<Index> place{part};
  bool done = by_threads_;
  for (const int d : partial_dims()) {
    if (d > vector_ && !std::exchange(done, true)) place.push_back(block);
    place.push_back(at(d));
  }
  if (!done) place.push_back(block);
  place.push_back(by_threads_ ? block * s_.block() + in_block : in_block);
  return place;
}

// Where the tile at hand, its vector j, has its partial results.
std::vector<Index> Nest::own_partial_place(const Index& j) const {
  const Index& first = range(vector_).base;
  if (by_threads_) return partial_place(part_, 0, first + j * s_.lanes + lane_);
  return partial_place(part_, first / s_.block(), j * s_.lanes + lane_);
}

// Before the first of several passes that add to them.
void Nest::clear_partial_results() {
  const std::vector<int> dims = partial_dims();
  const std::function<void(std::size_t)> over = [&](std::size_t n) {
    if (n < dims.size()) {
      const int d = dims[n];
      const Range of_dim = range(d);
      std::vector<Index> high{Index(of_dim.size)};
      if (of_dim.limited) high.push_back(Index(dim(d).extent) - of_dim.base);
      return emit_loop({Index(0)}, high, Binding::none, [&](Index i) {
        with(d, {of_dim.base + i, 1, false, 1}, [&] { over(n + 1); });
      });
    }
    unrolled(builder_, s_.vectors, [&](Index j) {
      builder_.loop(Index(0), Index(s_.lanes), Binding::vector, [&](Index lane) {
        lane_ = lane;
        builder_.store(partials_, own_partial_place(j), KernelBuilder::literal(0, compute_));
      });
    });
  };
  const Range lanes = range(vector_);  // all blocks, where their loop stands inside of those passes
  std::vector<Index> blocks{Index(ir::ceil_divide(lanes.size, s_.block()))};
  if (lanes.limited) blocks.push_back((Index(dim(vector_).extent + s_.block() - 1) - lanes.base) / s_.block());
  emit_loop({Index(0)}, blocks, Binding::none, [&](Index block) {
    with(vector_, {lanes.base + block * s_.block(), s_.block(), false, 1}, [&] { over(0); });
  });
}

// Lanes run along the dim whose elements lie close together in what is stored; with lanes along another one they would
// be rows apart.
void Nest::combine() {
  const int along = c_.find(s_.combine[0]);
  const std::vector<int> dims = partial_dims();
  const bool may_share = !dims.empty() && dims.back() > vector_ && !c_.share_index(dims.back(), vector_);
  const int shared = along != vector_ ? along : may_share ? dims.back() : -1;
  // A phase each, where its lanes are idle in the last block: of a loop over groups it would not be provable that each
  // output has one writer. One of the others is a loop of tasks.
  std::vector<int> copied, tasks, inside;
  for (const int d : dims) {
    if (d == shared) continue;
    (c_.lies_behind(d, vector_) && has_idle_lanes() ? copied
     : d < vector_ && tasks.empty()                 ? tasks
                                                    : inside)
        .push_back(d);
  }
  const std::function<void(std::size_t)> over_copies = [&](std::size_t n) {
    if (n < copied.size()) {
      for (std::int64_t i = 0; i < dim(copied[n]).extent; ++i)
        with(copied[n], {Index(i), 1, false, 1}, [&] { over_copies(n + 1); });
      return;
    }
    builder_.next_phase();
    if (tasks.empty()) return combine_blocks(along, shared, inside);
    parallel(builder_, dim(tasks[0]).extent, [&](Index i) {
      with(tasks[0], {i, 1, false, 1}, [&] { combine_blocks(along, shared, inside); });
    });
  };
  over_copies(0);
}

void Nest::combine_blocks(int along, int shared, const std::vector<int>& inside) {
  const std::int64_t blocks = ir::ceil_divide(dim(vector_).extent, s_.block());
  const std::int64_t lanes = s_.lanes;
  Index block_of_combine = 0;
  const auto finish = [&](const Index& in_block) {
    const std::vector<ir::ValueId> sum =
        builder_.reduce({Index(0)}, {Index(parts())}, Binding::none, {ir::Combiner::add}, {compute_}, [&](Index part) {
          return std::vector<Arg>{builder_.load(partials_, partial_place(part, block_of_combine, in_block))};
        });
    kernel_.move_to_dims(evaluate(c_.result));
    kernel_.store_anchor(sum[0]);
  };
  const std::function<void(std::size_t, const std::function<void()>&)> over_inside =
      [&](std::size_t n, const std::function<void()>& body) {
        if (n == inside.size()) return body();
        const int d = inside[n];
        serial(builder_, dim(d).extent, [&](Index i) { with(d, {i, 1, false, 1}, [&] { over_inside(n + 1, body); }); });
      };
  // Lanes along the vector's dim.
  const auto by_vector = [&](const Index& block) {
    over_inside(0, [&] {
      unrolled(builder_, s_.vectors, [&](Index j) {
        builder_.loop(Index(0), Index(lanes), Binding::vector, [&](Index lane) {
          vector_at_ = block * s_.block() + j * lanes + lane;
          valid_lanes([&] { finish(j * lanes + lane); });
        });
      });
    });
  };
  // Lanes along another one, the vector's dim element by element.
  const auto by_element = [&](const Index& block, const Index& vector) {
    serial(builder_, s_.block(), [&](Index in_block) {
      vector_at_ = block * s_.block() + in_block;
      const auto all = [&] {
        over_inside(0, [&] {
          builder_.loop(Index(0), Index(lanes), Binding::vector, [&](Index lane) {
            const Index c = vector * lanes + lane;
            with(along, {c, 1, false, 1}, [&] {
              if (dim(along).extent % lanes == 0) return finish(in_block);
              builder_.when({compare(c, CompareKind::lt, dim(along).extent)}, [&] { finish(in_block); });
            });
          });
        });
      };
      if (!has_idle_lanes()) return all();
      builder_.when({compare(vector_at_, CompareKind::lt, dim(vector_).extent)}, all);
    });
  };
  parallel(builder_, blocks, [&](Index block) {
    block_of_combine = block;
    if (shared < 0) return by_vector(block);
    const std::int64_t units = along == vector_ ? dim(shared).extent : ir::ceil_divide(dim(shared).extent, lanes);
    const Split tasks = split(units, ir::ceil_divide(std::int64_t{kernel_.context().target.tasks}, blocks));
    parallel(builder_, tasks.chunks, [&](Index chunk) {
      loop_chunk(builder_, tasks, chunk, [&](Index unit) {
        if (along != vector_) return by_element(block, unit);
        with(shared, {unit, 1, false, 1}, [&] { by_vector(block); });
      });
    });
  });
}

// A thread an element, in the order of the schedule.
void Nest::combine_by_threads() {
  std::vector<int> dims;
  std::vector<std::int64_t> extents;
  std::int64_t elements = 1;
  for (const std::string& name : s_.combine) {
    dims.push_back(c_.find(name));
    extents.push_back(dim(dims.back()).extent);
    elements *= extents.back();
  }
  const auto at_element = [&](const Index& element, const std::function<void()>& body) {
    const std::vector<Index> at = cuda::decode(element, extents);
    const std::function<void(std::size_t)> set = [&](std::size_t n) {
      if (n == dims.size()) return body();
      if (dims[n] == vector_) vector_at_ = at[n];
      with(dims[n], {at[n], 1, false, 1}, [&] { set(n + 1); });
    };
    set(0);
  };
  cuda::JoiningSums joining{elements, parts(), compute_, {}, {}};
  joining.load = [&](const Index& part, const Index& element) {
    ir::ValueId loaded = -1;
    at_element(element, [&] { loaded = builder_.load(partials_, partial_place(part, 0, vector_at_)); });
    return loaded;
  };
  joining.done = [&](const Index& element, const Arg& sum) {
    at_element(element, [&] {
      kernel_.move_to_dims(evaluate(c_.result));
      kernel_.store_anchor(sum);
    });
  };
  cuda::join_sums(kernel_, joining);
}

}  // namespace fusejit::scheduler
