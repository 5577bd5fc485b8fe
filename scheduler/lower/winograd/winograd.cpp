#include "scheduler/lower/winograd/winograd.h"

#include <algorithm>

#include "ir/ops/geometry/window.h"
#include "scheduler/lower/split.h"

namespace fusejit::scheduler {

using ir::Arg;
using ir::Binding;
using ir::CompareKind;
using ir::Index;
using ir::KernelBuilder;
using ir::MemKind;

void Winograd::emit(const std::vector<ir::MemId>& work, std::int64_t first_part) {
  work_ = work, first_part_ = first_part;
  over_shares(s_.tasks, true, [&] { task(); });
}

void Winograd::task() {
  const std::int64_t channels = ir::ceil_divide<std::int64_t>(extent(dims_.c), s_.lanes) * s_.lanes;
  v_ = declare_points(dims_.points(), patches(), channels);
  m_ = declare_points(dims_.points(), patches(), blocks_together() * s_.block());
  declare_half();
  to_points(v_, {&c_.a, value_a_, dims_.rows, dims_.columns, false, dims_.c, 0, extent(dims_.c)});
  std::int64_t outputs = extent(dims_.k);  // of the task
  for (const ScheduledLoop& loop : s_.tasks)
    if (c_.find(loop.dims[0]) == dims_.k) outputs = std::min(step_of(loop), outputs);
  const std::int64_t together = blocks_together() * s_.block(), all = ir::ceil_divide(extent(dims_.k), together),
                     of_task = ir::ceil_divide(outputs, together);
  loop_chunk(builder_, {all, of_task, ir::ceil_divide(all, of_task)}, share(dims_.k).base / outputs, [&](Index blocks) {
    first_block_ = blocks * blocks_together();
    multiply();
    over_blocks_together([&] { finish_patches(); });
  });
}

std::int64_t Winograd::blocks_together() const {
  return s_.outer.empty() ? 1 : ir::ceil_divide(share(dims_.k).size, s_.block());
}

void Winograd::over_blocks_together(const std::function<void()>& body) {
  over_blocks(first_block_, blocks_together(), [&](const Index& block) {
    of_together_ = block, block_ = (first_block_ + block) * s_.block();
    body();
  });
}

std::int64_t Winograd::patches_of_tile() const { return std::min(s_.accumulators() / s_.vectors, patches()); }
std::int64_t Winograd::tiles() const { return ir::ceil_divide(patches(), patches_of_tile()); }

std::vector<Index> Winograd::sum_at(const Index& point, const Index& patch, const Index& j) const {
  return m_.at(point, patch, of_together_ * s_.block() + j * s_.lanes + lane_);
}

// The sums over channels of the blocks of outputs at hand, point by point.
void Winograd::multiply() {
  const std::int64_t held = patches_of_tile(), whole = patches() / held;
  over_weights([&](const Index& weights, const PointsOfWeights& of) {
    over_points(of, [&](const Index& point) {
      over_blocks_together([&] {
        const auto tile_at = [&](const Index& tile, std::int64_t count) {
          fetch_results(point * tiles() + tile, dims_.points() * tiles());
          multiply(point, weights, tile, count);
        };
        serial(builder_, whole, [&](Index tile) { tile_at(tile, held); });
        if (patches() % held != 0) tile_at(Index(whole), patches() % held);
      });
    });
  });
}

// Lines of the packed weights that are read next, the next block's at this point or the first one's at the next: a
// share of them with each turn. Behind the last point lie those of the next block at the first.
void Winograd::fetch_packed(const Index& weights, const Index& turn, std::int64_t turns) {
  if (!s_.fetch_packed) return;
  const std::int64_t of_turn = ir::ceil_divide(ir::ceil_divide(extent(dims_.c) * s_.block(), kLine), turns);
  const Index next = of_together_ + 1;
  unrolled(builder_, of_turn, [&](Index i) {
    builder_.prefetch(packed_,
                      {first_block_ + next % blocks_together(), weights + next / blocks_together(), Index(0),
                       (turn * of_turn + i) * kLine},
                      ir::PrefetchKind::l2);
  });
}

// What the epilogue will touch, a share of the task's elements beside each tile of products. Rows and images lie one
// behind the other.
void Winograd::fetch_results(const Index& turn, std::int64_t turns) {
  if (s_.fetch.dims.empty()) return;
  const std::int64_t elements = images() * std::min(share(dims_.p).size, extent(dims_.p)) * extent(dims_.q),
                     of_turn = ir::ceil_divide(elements, turns);
  if (dims_.n >= 0) set(dims_.n, share(dims_.n).base);
  set(dims_.p, share(dims_.p).base);
  unrolled(builder_, of_turn, [&](Index i) {
    set(dims_.q, turn * of_turn + i);
    unrolled(builder_, s_.vectors, [&](Index j) {
      vector_at_ = block_ + j * s_.lanes;
      kernel_.move_to_dims(evaluate(c_.result));
      kernel_.prefetch_elements(stored_vectors());
    });
  });
}

void Winograd::multiply(const Index& point, const Index& weights, const Index& tile, std::int64_t patches) {
  builder_.loop(Index(0), Index(s_.lanes), Binding::vector, [&](Index lane) {
    lane_ = lane;
    const ir::MemId sums = builder_.local(MemKind::register_local, compute_, {patches, s_.vectors}, 0);
    add_terms(sums, point, weights, tile, patches);
    unrolled(builder_, patches, [&](Index i) {
      unrolled(builder_, s_.vectors, [&](Index j) {
        builder_.store(m_.memory, sum_at(point, tile * patches_of_tile() + i, j), builder_.load(sums, {i, j}));
      });
    });
  });
}

void Winograd::add_terms(ir::MemId sums, const Index& point, const Index& weights_point, const Index& tile,
                         std::int64_t patches) {
  const std::int64_t channels = extent(dims_.c), at_once = s_.held(contraction_dim(dims_.c).name),
                     trips = ir::ceil_divide(channels, at_once);
  const auto terms = [&](const Index& trip, std::int64_t count) {
    fetch_packed(weights_point, tile * trips + trip, tiles() * trips);
    unrolled(builder_, count, [&](Index o) {
      const Index c = trip * at_once + o;
      const ir::MemId weights = builder_.local(MemKind::register_local, compute_, {s_.vectors});
      unrolled(builder_, s_.vectors, [&](Index j) {
        builder_.store(weights, {j},
                       builder_.load(packed_, {block_ / s_.block(), weights_point, c, j * s_.lanes + lane_}));
      });
      unrolled(builder_, patches, [&](Index i) {
        const Arg x = builder_.load(v_.memory, v_.at(point, tile * patches_of_tile() + i, c));
        unrolled(builder_, s_.vectors, [&](Index j) {
          builder_.store(sums, {i, j},
                         kernel_.multiply_add(x, builder_.load(weights, {j}), builder_.load(sums, {i, j}), compute_));
        });
      });
    });
  };
  serial(builder_, channels / at_once, [&](Index trip) { terms(trip, at_once); });
  if (channels % at_once != 0) terms(Index(channels / at_once), channels % at_once);
}

// The results of a block of outputs, in lanes along them.
void Winograd::finish_patches() {
  builder_.loop(Index(0), Index(s_.lanes), Binding::vector, [&](Index lane) {
    lane_ = lane;
    const auto over_vectors = [&](const std::function<void(const Index& j)>& body) {
      unrolled(builder_, s_.vectors, [&](Index j) {
        vector_at_ = block_ + j * s_.lanes + lane;
        body(j);
      });
    };
    if (!work_.empty()) state_ = accumulators_.open(s_.vectors);
    over_patches([&](const Index& patch) { over_vectors([&](const Index& j) { finish_patch(patch, j); }); });
    if (work_.empty()) return;
    std::vector<Block> blocks{{share(dims_.p).base, share(dims_.p).size, extent(dims_.p)},
                              {0, extent(dims_.q), extent(dims_.q)}};
    if (dims_.n >= 0) blocks.push_back({share(dims_.n).base, images(), extent(dims_.n)});
    const Arg count = elements_in(blocks);
    over_vectors(
        [&](const Index& j) { valid_lanes([&] { leave_sums(part_, accumulators_.partial(state_, j, count)); }); });
  });
}

void Winograd::finish_patch(const Index& patch, const Index& j) {
  const Index p = at(dims_.p), q = at(dims_.q);
  both_axes(
      dims_.down.points(), dims_.across.points(),
      [&](const WinogradAxis& axis, const std::vector<Arg>& sums) { return transform_.results(axis, sums); },
      [&](const Index& i, const Index& column) {
        return builder_.load(m_.memory, sum_at(i * dims_.across.points() + column, patch, j));
      },
      [&](const Index& i, const std::vector<Arg>& results) {
        for (std::size_t c = 0; c < results.size(); ++c) {
          set(dims_.p, p + i), set(dims_.q, q + Index(static_cast<std::int64_t>(c)));
          const auto value = [&] { return results[c]; };
          const auto finish = [&] {
            if (!work_.empty() && c == 0) {  // shifts are those of a part's first result
              const std::vector<ir::Compare> first{compare(patch, CompareKind::eq, 0), compare(i, CompareKind::eq, 0)};
              builder_.when(first, [&] { at_result(value, [&] { accumulators_.set_shifts(state_, j); }); });
            }
            finish_result(value, j);
          };
          const std::vector<ir::Compare> there = is_result();
          there.empty() ? finish() : builder_.when(there, finish);
        }
      });
}

}  // namespace fusejit::scheduler
