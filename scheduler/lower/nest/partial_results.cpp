// Partial results of a contraction: what tasks leave in memory where a sum is cut, and the phase that adds them up in
// ascending order and computes what the group stores.
#include <utility>

#include "ir/ops/geometry/window.h"
#include "scheduler/lower/nest/build.h"
#include "scheduler/lower/split.h"

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

// [part, parallel dims before the vector's, its blocks, those after it, what a block holds]; between threads, which lie
// side by side along the vector's dim, that is one block.
void ContractionLoops::declare_partial_results() {
  const std::int64_t blocks = ir::ceil_divide(contraction_dim(vector_).extent, s_.block());
  std::vector<std::int64_t> dims{parts()};
  bool done = s_.by_threads();
  for (const int d : partial_dims()) {
    if (d > vector_ && !std::exchange(done, true)) dims.push_back(blocks);
    dims.push_back(contraction_dim(d).extent);
  }
  if (!done) dims.push_back(blocks);
  const std::int64_t together = s_.lanes_together();
  dims.push_back(s_.by_threads() ? ir::ceil_divide(contraction_dim(vector_).extent, together) * together : s_.block());
  partials_ = builder_.work(compute_, dims);
}

std::vector<Index> ContractionLoops::partial_place(const Index& part, const Index& block, const Index& in_block) const {
  std::vector<Index> place{part};
  bool done = s_.by_threads();
  for (const int d : partial_dims()) {
    if (d > vector_ && !std::exchange(done, true)) place.push_back(block);
    place.push_back(at(d));
  }
  if (!done) place.push_back(block);
  place.push_back(s_.by_threads() ? block * s_.block() + in_block : in_block);
  return place;
}

// Lanes run along the dim whose elements lie close together in what is stored; with lanes along another one they would
// be rows apart.
void ContractionLoops::combine() {
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
      for (std::int64_t i = 0; i < contraction_dim(copied[n]).extent; ++i)
        with_element(copied[n], Index(i), [&] { over_copies(n + 1); });
      return;
    }
    builder_.next_phase();
    if (tasks.empty()) return combine_blocks(along, shared, inside);
    parallel(builder_, contraction_dim(tasks[0]).extent,
             [&](Index i) { with_element(tasks[0], i, [&] { combine_blocks(along, shared, inside); }); });
  };
  over_copies(0);
}

void ContractionLoops::combine_blocks(int along, int shared, const std::vector<int>& inside) {
  const std::int64_t blocks = ir::ceil_divide(contraction_dim(vector_).extent, s_.block());
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
        serial(builder_, contraction_dim(d).extent,
               [&](Index i) { with_element(d, i, [&] { over_inside(n + 1, body); }); });
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
            with_element(along, c, [&] {
              if (contraction_dim(along).extent % lanes == 0) return finish(in_block);
              builder_.when({compare(c, CompareKind::lt, contraction_dim(along).extent)}, [&] { finish(in_block); });
            });
          });
        });
      };
      if (!has_idle_lanes()) return all();
      builder_.when({compare(vector_at_, CompareKind::lt, contraction_dim(vector_).extent)}, all);
    });
  };
  parallel(builder_, blocks, [&](Index block) {
    block_of_combine = block;
    if (shared < 0) return by_vector(block);
    const std::int64_t units =
        along == vector_ ? contraction_dim(shared).extent : ir::ceil_divide(contraction_dim(shared).extent, lanes);
    const Split tasks = split(units, ir::ceil_divide(std::int64_t{kernel_.context().target.tasks}, blocks));
    parallel(builder_, tasks.chunks, [&](Index chunk) {
      loop_chunk(builder_, tasks, chunk, [&](Index unit) {
        if (along != vector_) return by_element(block, unit);
        with_element(shared, unit, [&] { by_vector(block); });
      });
    });
  });
}

}  // namespace fusejit::scheduler
