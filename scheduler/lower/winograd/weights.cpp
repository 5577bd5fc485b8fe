#include "scheduler/lower/winograd/weights.h"

#include <algorithm>

#include "ir/ops/geometry/window.h"
#include "scheduler/lower/split.h"

namespace fusejit::scheduler {

using ir::Arg;
using ir::Binding;
using ir::Index;
using ir::KernelBuilder;
using ir::MemKind;

void WinogradWeights::emit(const std::vector<ir::MemId>& work, std::int64_t first_part) {
  work_ = work, first_part_ = first_part;
  if (combines_in_tasks()) {
    return over_shares(s_.tasks, true, [&] {
      std::vector<OfTask> dims;
      for (std::size_t d = 0; d < c_.dims.size(); ++d) {
        const Share& of_task = share(static_cast<int>(d));
        dims.push_back({of_task.base, of_task.size, of_task.ends_early});
      }
      in_task(std::move(dims), [&] { task(); });
    });
  }
  declare_partial_results();
  over_shares(s_.tasks, true, [&] { task(); });
  combine();
}

void WinogradWeights::task() {
  const auto whole_vectors = [&](std::int64_t n) { return ir::ceil_divide<std::int64_t>(n, s_.lanes) * s_.lanes; };
  const std::int64_t outputs = ir::ceil_divide(share(dims_.k).size, s_.block()) * s_.block();
  const Share channels = share(dims_.c);
  v_ = declare_points(dims_.points(), patches(), whole_vectors(channels.size));
  g_ = declare_points(dims_.points(), patches(), outputs);
  m_ = declare_points(dims_.weight_points(), channels.size, outputs, true);
  declare_half();
  std::size_t rows = 0, columns = 0;  // of the second operand
  for (std::size_t i = 0; i < c_.b.index.size(); ++i) {
    if (c_.b.index[i].coefficient_of(dims_.p) != 0) rows = i;
    if (c_.b.index[i].coefficient_of(dims_.q) != 0) columns = i;
  }
  over_shares(s_.outer, false, [&] {
    to_points(v_, {&c_.a, value_a_, dims_.rows, dims_.columns, false, dims_.c, channels.base, channels.size});
    to_points(g_, {&c_.b, value_b_, rows, columns, true, dims_.k, share(dims_.k).base, outputs});
    multiply();
  });
  finish_taps();
}

// Those of the outputs of a task.
void WinogradWeights::over_blocks_of_task(const std::function<void(const Index& block)>& body) {
  over_blocks(share(dims_.k).base / s_.block(), ir::ceil_divide(share(dims_.k).size, s_.block()), body);
}

void WinogradWeights::multiply() {
  const std::int64_t channels = share(dims_.c).size, held = std::min(s_.accumulators() / s_.vectors, channels);
  over_weights([&](const Index& weights, const PointsOfWeights& of) {
    over_blocks_of_task([&](const Index& block) {
      serial(builder_, channels / held, [&](Index tile) { multiply(weights, of, block, tile * held, held); });
      if (channels % held != 0) multiply(weights, of, block, Index(channels / held * held), channels % held);
    });
  });
}

// A tile of sums, to which all patches at hand are added.
void WinogradWeights::multiply(const Index& weights, const PointsOfWeights& of, const Index& block, const Index& first,
                               std::int64_t channels) {
  builder_.loop(Index(0), Index(s_.lanes), Binding::vector, [&](Index lane) {
    const ir::MemId sums = builder_.local(MemKind::register_local, compute_, {channels, s_.vectors});
    const auto each = [&](const std::function<void(const Index& i, const Index& j)>& body) {
      unrolled(builder_, channels, [&](Index i) { unrolled(builder_, s_.vectors, [&](Index j) { body(i, j); }); });
    };
    const auto output = [&](const Index& j) { return block * s_.block() + j * s_.lanes + lane; };
    each([&](const Index& i, const Index& j) {
      builder_.store(sums, {i, j}, builder_.load(m_.memory, m_.at(weights, first + i, output(j))));
    });
    over_points(of, [&](const Index& point) {
      serial(builder_, patches(), [&](Index patch) {
        const ir::MemId gradients = builder_.local(MemKind::register_local, compute_, {s_.vectors});
        unrolled(builder_, s_.vectors, [&](Index j) {
          builder_.store(gradients, {j}, builder_.load(g_.memory, g_.at(point, patch, output(j))));
        });
        unrolled(builder_, channels, [&](Index i) {
          const Arg x = builder_.load(v_.memory, v_.at(point, patch, first + i));
          unrolled(builder_, s_.vectors, [&](Index j) {
            builder_.store(
                sums, {i, j},
                kernel_.multiply_add(x, builder_.load(gradients, {j}), builder_.load(sums, {i, j}), compute_));
          });
        });
      });
    });
    each([&](const Index& i, const Index& j) {
      builder_.store(m_.memory, m_.at(weights, first + i, output(j)), builder_.load(sums, {i, j}));
    });
  });
}

// The sums of all points back to taps.
void WinogradWeights::finish_taps() {
  over_blocks_of_task([&](const Index& block) {
    serial(builder_, share(dims_.c).size, [&](Index c) {
      set(dims_.c, share(dims_.c).base + c);
      unrolled(builder_, s_.vectors, [&](Index j) {
        builder_.loop(Index(0), Index(s_.lanes), Binding::vector, [&](Index lane) {
          lane_ = lane;
          const Index in_block = j * s_.lanes + lane;
          both_axes(
              dims_.down.weight_points(), dims_.across.weight_points(),
              [&](const WinogradAxis& axis, const std::vector<Arg>& sums) { return transform_.taps(axis, sums); },
              [&](const Index& r, const Index& s) {
                return builder_.load(m_.memory,
                                     m_.at(r * dims_.across.weight_points() + s, c, block * s_.block() + in_block));
              },
              [&](const Index& r, const std::vector<Arg>& taps) {
                set(dims_.r, r);
                for (std::size_t s = 0; s < taps.size(); ++s) {
                  set(dims_.s, Index(static_cast<std::int64_t>(s)));
                  builder_.store(partials_, partial_place(part_, share(dims_.k).base / s_.block() + block, in_block),
                                 taps[s]);
                }
              });
        });
      });
    });
  });
}

}  // namespace fusejit::scheduler
