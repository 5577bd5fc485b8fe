#include "scheduler/lower/tile.h"

#include <algorithm>

#include "ir/base/check.h"
#include "scheduler/lower/accumulator.h"
#include "scheduler/lower/long_sum.h"
#include "scheduler/lower/partials.h"
#include "scheduler/lower/split.h"

namespace fusejit::scheduler {

using ir::Arg;
using ir::Binding;
using ir::CompareKind;
using ir::Index;
using ir::KernelBuilder;
using ir::MemKind;

namespace {

constexpr std::int64_t kLeastLanes = 4;  // a vector that an access still pays for
constexpr std::int64_t kFewGroups = 4;   // fewer are not looped over
constexpr std::int64_t kFewChannels = 8;

std::int64_t power_of_two_in(std::int64_t n, std::int64_t most) {
  std::int64_t power = 1;
  while (power < most && n % (2 * power) == 0) power *= 2;
  return power;
}

}  // namespace

bool run_lanes_along_groups(std::int64_t groups, std::int64_t outputs) {
  if (groups == 1 || power_of_two_in(outputs, kLeastLanes) == kLeastLanes) return false;
  return groups > kFewGroups || outputs < 2 * kLeastLanes;
}

int lanes_in_group(std::int64_t groups, std::int64_t outputs, int most) {
  const std::int64_t even = power_of_two_in(outputs, most);
  if (groups == 1 || even < kLeastLanes) return most;
  return static_cast<int>(even);
}

TileShape choose_tile(const Target& target, const TileProblem& problem, int lanes) {
  TileShape tile;
  // Along groups a lane without a group costs a masked access at every tap.
  const std::int64_t across = problem.across(), columns = problem.columns.out;
  const bool whole = across % lanes == 0 && across % (2 * lanes) != 0;
  tile.vectors = across > lanes && !(problem.groups > 1 && whole) ? 2 : 1;
  // Along groups an epilogue comes after few products, and its own registers count for more; of few channels every
  // product has an address of its own, and what LLVM keeps of them takes registers.
  const bool few = problem.lanes_along_groups || problem.channels < kFewChannels ||
                   (vector_registers(target) == 32 && target.fma_per_cycle < 2);
  const int most = std::min((vector_registers(target) - 2 - tile.vectors) / tile.vectors, few ? 8 : 14);
  const std::int64_t tiles = std::max<std::int64_t>(1, (columns + most - 1) / most);
  tile.pixels = static_cast<int>((columns + tiles - 1) / tiles);  // balanced: 26 columns are 2 x 13
  return tile;
}

std::int64_t pixels(const std::vector<TiledProblem>& problems) {
  std::int64_t sum = 0;
  for (const auto& [problem, tile, packed] : problems) sum += problem.images * problem.rows.out * problem.columns.out;
  return sum;
}

namespace {

constexpr int kUnrolledChannels = 4;
constexpr std::int64_t kFewProducts = 256;
constexpr std::int64_t kLongProduct = 64;  // times as long as another chain that is cut

class TileEmitter {
 public:
  TileEmitter(GroupKernel& kernel, Accumulators& accumulators, const TiledProblem& tiled)
      : kernel_(kernel),
        builder_(kernel.builder()),
        problem_(tiled.problem),
        tile_(tiled.tile),
        packed_(tiled.packed),
        lanes_(kernel.lanes()),
        accumulators_(accumulators) {
    const Target& target = kernel_.context().target;
    blocks_ = (problem_.across() + tile_.vectors * lanes_ - 1) / (tile_.vectors * lanes_);
    const bool matrix = is_matrix();
    tiles_ = (problem_.columns.out + tile_.pixels - 1) / tile_.pixels;
    row_blocks_ = matrix ? split(1, 1) : split(problem_.rows.out, rows_wanted(target, blocks_));
    column_blocks_ = matrix ? split(tiles_, (target.tasks + blocks_ - 1) / blocks_) : split(tiles_, 1);
  }

  // Tasks that leave a partial state of the epilogue's sums each.
  std::int64_t parts() const { return problem_.images * row_blocks_.chunks * column_blocks_.chunks; }

  // The partial states go to `work`, from `first_part` on.
  void emit(const std::vector<ir::MemId>& work, std::int64_t first_part) {
    work_ = work, first_part_ = first_part;
    const std::int64_t blocks = blocks_;
    const bool matrix = is_matrix();
    const Target& target = kernel_.context().target;
    const bool parallel_outputs = problem_.lanes_along_groups || parts() * 2 < target.tasks;
    const auto over_outputs = [&] {
      const std::int64_t apart = problem_.apart();
      // Of a loop over groups with idle lanes it would not be provable that each output has one writer.
      const bool copies = problem_.groups_adjoin() && problem_.outputs % (tile_.vectors * lanes_) != 0;
      const bool outer = parallel_outputs && apart > 1, inner = parallel_outputs && apart == 1;
      const auto over_blocks = [&](Index a) {
        apart_ = a;
        (inner ? parallel : serial)(builder_, blocks, [&](Index block) { output_block(block); });
      };
      if (!copies) return (outer ? parallel : serial)(builder_, apart, over_blocks);
      for (std::int64_t a = 0; a < apart; ++a) over_blocks(a);
    };
    const auto over_parts = [&](const std::function<void()>& inner) {
      if (matrix) {
        return parallel(builder_, column_blocks_.chunks, [&](Index b) { column_block_ = b, inner(); });
      }
      parallel(builder_, problem_.images, [&](Index n) {
        image_ = n;
        parallel(builder_, row_blocks_.chunks, [&](Index b) { row_block_ = b, inner(); });
      });
    };
    over_parts(over_outputs);
  }

 private:
  // A problem of one row, such as a matrix, is cut along its columns instead, unless some taps fall outside.
  bool is_matrix() const { return problem_.rows.out == 1 && problem_.images == 1 && problem_.columns.inside(); }

  // Row blocks so that there are enough tasks and a block's input stays in a quarter of L2. Groups share no input, so
  // there each block of them may be a task.
  std::int64_t rows_wanted(const Target& target, std::int64_t blocks) const {
    if (problem_.lanes_along_groups) {
      const std::int64_t without = problem_.images * (problem_.apart() > 1 ? problem_.apart() : blocks);
      return std::min(problem_.rows.out, (target.tasks + without - 1) / without);
    }
    const std::int64_t row_bytes = problem_.columns.in * problem_.groups * problem_.channels * 4 * problem_.rows.stride;
    const std::int64_t for_cache = problem_.rows.out * row_bytes / std::max<std::int64_t>(1, target.l2_bytes / 4) + 1;
    const std::int64_t for_tasks = (target.tasks + problem_.images - 1) / problem_.images;
    return std::min(problem_.rows.out, std::max(for_cache, for_tasks));
  }

  void output_block(const Index& block) {
    block_ = block;
    builder_.loop(Index(0), Index(lanes_), Binding::vector, [&](Index lane) {
      lane_ = lane;
      state_ = accumulators_.open(tile_.vectors);
      if (problem_.rows.out == 1) {
        row_in_block_ = 0;
        row(Index(0));
      } else {
        std::vector<Index> high{Index(row_blocks_.chunk)};
        if (!row_blocks_.even()) high.push_back(Index(row_blocks_.count) - row_block_ * row_blocks_.chunk);
        builder_.loop({Index(0)}, high, Binding::none, [&](Index i) {
          row_in_block_ = i;
          row(row_block_ * row_blocks_.chunk + i);
        });
      }
      if (!work_.empty()) deliver();
    });
  }

  // Columns of one row: interior tiles in a loop, tiles with taps outside or of another width one by one.
  void row(const Index& p) {
    row_ = p;
    const Window& w = problem_.columns;
    const auto interior = [&](std::int64_t tile) {
      const std::int64_t first = tile * tile_.pixels, last = first + tile_.pixels - 1;
      return last < w.out && first * w.stride - w.low_padding >= 0 &&
             last * w.stride + (w.kernel - 1) * w.dilation - w.low_padding < w.in;
    };
    if (column_blocks_.chunks > 1) return matrix_tiles();
    std::int64_t tile = 0;
    while (tile < tiles_) {
      std::int64_t end = tile;
      while (end < tiles_ && interior(end)) ++end;
      if (end > tile + 1) {
        builder_.loop(Index(0), Index(end - tile), Binding::none, [&](Index i) {
          first_tile_ = tile == 0 ? std::optional<Index>(i) : std::nullopt;
          one_tile((i + Index(tile)) * tile_.pixels, tile_.pixels, true);
        });
        tile = end;
        continue;
      }
      const std::int64_t first = tile * tile_.pixels;
      first_tile_ = tile == 0 ? std::optional<Index>(0) : std::nullopt;
      one_tile(Index(first), static_cast<int>(std::min<std::int64_t>(tile_.pixels, w.out - first)), end > tile);
      ++tile;
    }
  }

  // The tiles of one block of columns: whole ones in a loop, the narrower last one of the matrix by itself.
  void matrix_tiles() {
    const std::int64_t whole = problem_.columns.out / tile_.pixels;
    const int rest = static_cast<int>(problem_.columns.out % tile_.pixels);
    std::vector<Index> high{Index(column_blocks_.chunk)};
    const Split& s = column_blocks_;
    if (!(s.even() && rest == 0)) high.push_back(Index(whole) - column_block_ * s.chunk);
    builder_.loop({Index(0)}, high, Binding::none, [&](Index i) {
      first_tile_ = i;
      one_tile((column_block_ * s.chunk + i) * tile_.pixels, tile_.pixels, true);
    });
    if (rest == 0) return;
    builder_.when({compare(column_block_, CompareKind::eq, s.chunks - 1)}, [&] {
      first_tile_ = s.last() == 1 ? std::optional<Index>(0) : std::nullopt;
      one_tile(Index(whole * tile_.pixels), rest, true);
    });
  }

  void one_tile(const Index& q, int pixels, bool interior) {
    if (does_little()) prefetch_next(q, pixels);
    acc_ = builder_.local(MemKind::register_local, problem_.compute, {pixels, tile_.vectors}, 0);
    long_sum_ = is_long_product() ? LongSum(builder_, acc_) : LongSum();
    if (problem_.channels > 0) taps(q, pixels, interior);
    if (long_sum_.is_open()) long_sum_.close(builder_);
    epilogue(q, pixels);
  }

  // A sum over very many channels, such as the rows of a batch: in blocks.
  bool is_long_product() const {
    return problem_.rows.kernel * problem_.columns.kernel == 1 &&
           is_long_chain(problem_.channels / kLongProduct, problem_.compute);
  }

  // So little arithmetic for each output that memory is what the tile waits for.
  bool does_little() const {
    if (problem_.rows.out == 1) return false;
    const bool adjoin = problem_.outputs <= tile_.vectors * lanes_;  // the pixels of a row, in one stream
    if (!problem_.lanes_along_groups && (problem_.groups > 1 || adjoin)) return false;
    return problem_.channels * problem_.rows.kernel * problem_.columns.kernel <= kFewProducts;
  }

  // The tile below this one: what its epilogue touches and, where lanes of inputs are read, its new rows of inputs.
  // What lies side by side in memory is many channels apart here, which no processor foresees.
  void prefetch_next(const Index& q, int pixels) {
    const Window &rows = problem_.rows, &columns = problem_.columns;
    const Index below = row_ + Index(1);
    unrolled(builder_, pixels, [&](Index i) {
      unrolled(builder_, tile_.vectors, [&](Index j) {
        const Index k = block_ * (tile_.vectors * lanes_) + j * lanes_, g = problem_.group(apart_, k);
        const std::int64_t new_rows = problem_.lanes_along_groups && problem_.channels == 1 ? rows.stride : 0;
        for (std::int64_t r = 0; r < std::min(new_rows, rows.kernel); ++r) {
          for (std::int64_t s = 0; s < std::min(columns.stride, columns.kernel); ++s) {
            problem_.prefetch(image_, rows.input(below, rows.kernel - 1 - r),
                              columns.input(q + i, columns.kernel - 1 - s), g, Index(0));
          }
        }
        problem_.move_to(image_, below, q + i, g, problem_.output(apart_, k));
        kernel_.prefetch_elements();
      });
    });
  }

  void taps(const Index& q, int pixels, bool interior) {
    const TapRange r_range = tap_range(problem_.rows, row_);
    const bool few = problem_.channels < kFewChannels;
    const std::int64_t taps = problem_.columns.kernel;
    const auto row_tap = [&](const Index& r) {
      const Index h = problem_.rows.input(row_, r);
      const auto column_tap = [&](const Index& s) { channels(q, pixels, interior, r, h, s); };
      // Unrolled, neighbouring outputs share inputs. Along lanes that saves loads, and tiles of 16 registers gain a
      // little. In larger tiles LLVM keeps every broadcast for the next tap, which spills: half the speed of a 7x7
      // stem.
      const bool share = problem_.lanes_along_groups || vector_registers(kernel_.context().target) == 16;
      const bool unroll = !interior || (share && few && taps * problem_.channels <= 32);
      if (taps == 1) return column_tap(Index(0));
      builder_.loop(Index(0), Index(taps), unroll ? Binding::unroll : Binding::none, column_tap);
    };
    if (problem_.rows.kernel == 1 && r_range.constant) return row_tap(Index(0));
    builder_.loop(r_range.low, r_range.high, Binding::none, row_tap);
  }

  void channels(const Index& q, int pixels, bool interior, const Index& r, const Index& h, const Index& s) {
    const auto one = [&](const Index& c) { multiply(q, pixels, interior, r, h, s, c); };
    const std::int64_t n = problem_.channels, whole = n / kUnrolledChannels, rest = n % kUnrolledChannels;
    if (whole > 0) {
      const auto four = [&](const Index& base) {
        unrolled(builder_, kUnrolledChannels, [&](Index u) { one(base + u); });
      };
      if (whole == 1) {
        four(Index(0));
      } else if (long_sum_.is_open()) {
        loop_in_blocks(
            builder_, whole, kBlockTerms / kUnrolledChannels, [&](Index c) { four(c * kUnrolledChannels); },
            [&] { long_sum_.flush(builder_); });
      } else {
        builder_.loop(Index(0), Index(whole), Binding::none, [&](Index c) { four(c * kUnrolledChannels); });
      }
    }
    for (std::int64_t c = n - rest; c < n; ++c) one(Index(c));
  }

  // One channel of one tap: a row of weights against every pixel of the tile.
  void multiply(const Index& q, int pixels, bool interior, const Index& r, const Index& h, const Index& s,
                const Index& c) {
    const ir::MemId weights = builder_.local(MemKind::register_local, problem_.compute, {tile_.vectors});
    unrolled(builder_, tile_.vectors, [&](Index j) {
      builder_.store(weights, {j},
                     builder_.load(packed_, packed_index(problem_, apart_, block_, r, s, c, j * lanes_ + lane_)));
    });
    unrolled(builder_, pixels, [&](Index i) {
      const Index w = problem_.columns.input(q + i, s);
      const auto body = [&] {
        const auto add = [&](const Index& j, Arg x) {
          const Arg wv = builder_.load(weights, {j}), old = builder_.load(acc_, {i, j});
          builder_.store(acc_, {i, j}, multiply_add(x, wv, old));
        };
        if (problem_.lanes_along_groups) {
          return unrolled(builder_, tile_.vectors, [&](Index j) { add(j, input_vector(h, w, j, c)); });
        }
        kernel_.expression().nested([&] {
          const Arg x = problem_.input(image_, h, w, apart_, c);
          unrolled(builder_, tile_.vectors, [&](Index j) { add(j, x); });
        });
      };
      if (interior) return body();
      builder_.when(within(w, problem_.columns.in), body);
    });
  }

  // Channel c of the groups of vector j; 0 beyond the last group.
  Arg input_vector(const Index& h, const Index& w, const Index& j, const Index& c) {
    const Index g = across(j);
    const auto load = [&] { return kernel_.expression().nested([&] { return problem_.input(image_, h, w, g, c); }); };
    const bool whole = problem_.groups % (tile_.vectors * lanes_) == 0;
    return whole ? load() : value_or_zero(builder_, g, problem_.groups, problem_.compute, load);
  }

  Index across(const Index& j) const { return block_ * (tile_.vectors * lanes_) + j * lanes_ + lane_; }
  void move_to(const Index& p, const Index& q, const Index& across) {
    problem_.move_to(image_, p, q, problem_.group(apart_, across), problem_.output(apart_, across));
  }

  Arg multiply_add(Arg a, Arg b, Arg c) { return kernel_.multiply_add(a, b, c, problem_.compute); }

  // While the tile is in registers: everything that the group stores or sums.
  void epilogue(const Index& q, int pixels) {
    const auto at = [&](const Index& i, const Index& j, const std::function<void()>& body) {
      const Index k = across(j);
      const auto inner = [&] {
        move_to(row_, q + i, k);
        kernel_.expression().nested([&] {
          kernel_.expression().bind(kernel_.group().anchor, kernel_.here(), builder_.load(acc_, {i, j}));
          body();
        });
      };
      real_outputs(k, inner);
    };
    const auto each_vector = [&](const std::function<void(Index)>& body) { unrolled(builder_, tile_.vectors, body); };
    if (!work_.empty() && first_tile_) {
      const auto pivots = [&] {
        each_vector([&](Index j) { at(Index(0), j, [&] { accumulators_.set_pivots(state_, j); }); });
      };
      std::vector<ir::Compare> first;
      for (const Index& index : {*first_tile_, row_in_block_}) {
        if (!index.is_constant()) first.push_back(compare(index, CompareKind::eq, 0));
      }
      first.empty() ? pivots() : builder_.when(first, pivots);
    }
    unrolled(builder_, pixels, [&](Index i) {
      each_vector([&](Index j) {
        at(i, j, [&] {
          kernel_.store_all(accumulators_.expressions());
          if (!work_.empty()) accumulators_.add(state_, j, Index(0));
        });
      });
    });
  }

  // Leaves this part's partial states in `work`.
  void deliver() {
    const bool matrix = is_matrix();
    const Index part = Index(first_part_) + (matrix ? column_block_ : image_ * row_blocks_.chunks + row_block_);
    const auto literal = [](std::int64_t n) { return KernelBuilder::literal(static_cast<double>(n), DType::f64); };
    Arg count;
    const Split& s = row_blocks_;
    if (matrix) {
      const std::int64_t chunk = column_blocks_.chunk * tile_.pixels;
      count = uneven(column_block_, column_blocks_.chunks, literal(chunk),
                     literal(problem_.columns.out - chunk * (column_blocks_.chunks - 1)));
    } else {
      count = uneven(row_block_, s.chunks, literal(s.chunk * problem_.columns.out),
                     literal(s.last() * problem_.columns.out));
    }
    unrolled(builder_, tile_.vectors, [&](Index j) {
      const Index k = across(j);
      const auto inner = [&] {
        move_to(row_block_ * s.chunk, Index(0), k);
        const std::vector<Arg> state = accumulators_.partial(state_, j, count);
        const std::vector<Index> index = partial_index(kernel_, part, kernel_.point());
        for (std::size_t c = 0; c < work_.size(); ++c) builder_.store(work_[c], index, state[c]);
      };
      real_outputs(k, inner);
    });
  }

  // Lanes beyond the last output do nothing.
  void real_outputs(const Index& k, const std::function<void()>& body) {
    const std::int64_t extent = problem_.across();
    if (extent % (tile_.vectors * lanes_) == 0) return body();
    const bool single = extent == 1;  // `==` pins the lane, so that one writer is provable
    builder_.when({compare(k, single ? CompareKind::eq : CompareKind::lt, single ? 0 : extent)}, body);
  }

  Arg uneven(const Index& chunk, std::int64_t chunks, Arg whole, Arg last) {
    if (whole == last || chunks == 1) return chunks == 1 ? last : whole;
    return builder_.choose(
        {compare(chunk, CompareKind::lt, chunks - 1)}, {DType::f64}, [&] { return std::vector<Arg>{whole}; },
        [&] { return std::vector<Arg>{last}; })[0];
  }

  GroupKernel& kernel_;
  KernelBuilder& builder_;
  const TileProblem& problem_;
  const TileShape tile_;
  const ir::MemId packed_;
  const int lanes_;
  Accumulators& accumulators_;
  std::vector<ir::MemId> work_;
  Accumulators::State state_;
  Split row_blocks_, column_blocks_;
  std::int64_t tiles_ = 1, blocks_ = 1, first_part_ = 0;
  Index image_ = 0, row_block_ = 0, column_block_ = 0, apart_ = 0, block_ = 0, lane_ = 0, row_ = 0, row_in_block_ = 0;
  std::optional<Index> first_tile_;  // position of the current tile among those that may be the part's first
  LongSum long_sum_;
  ir::MemId acc_ = -1;
};

}  // namespace

void emit_tiles(GroupKernel& kernel, const std::vector<TiledProblem>& problems) {
  Accumulators accumulators(kernel);
  std::vector<TileEmitter> emitters;
  for (const TiledProblem& tiled : problems) emitters.emplace_back(kernel, accumulators, tiled);
  emit_with_sums(kernel, accumulators, emitters, [&](const std::vector<ir::MemId>& work, std::int64_t parts) {
    combine_partials(kernel, accumulators, work, parts, pixels(problems));
  });
}

}  // namespace fusejit::scheduler
