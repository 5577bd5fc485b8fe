// Register tiles on CUDA: a thread holds `pixels` neighbouring outputs of one row times one vector of channels over the
// whole sum; threads side by side (block.x) take the vectors of a weight block, so weights load coalesced and inputs
// are broadcast. Rows of tiles are shared out to block.y and the grid. Sums of an epilogue (batch-norm statistics) stay
// with the thread until its share is done.
// Where that gives a device too few blocks, the channels are shared out to parts of the grid (grid.z): each leaves its
// sums in `work`, and a phase of its own joins them and does the epilogue.
#include <algorithm>

#include "ir/base/check.h"
#include "scheduler/lower/accumulator.h"
#include "scheduler/lower/cuda/lower.h"
#include "scheduler/lower/cuda/parts.h"
#include "scheduler/lower/long_sum.h"
#include "scheduler/lower/partials.h"
#include "scheduler/lower/split.h"

namespace fusejit::scheduler::cuda {

using ir::Arg;
using ir::Binding;
using ir::CompareKind;
using ir::Index;
using ir::KernelBuilder;
using ir::MemKind;
using ir::Op;

namespace {

constexpr std::int64_t kMostPixels = 8;
constexpr std::int64_t kMostValues = 32;  // of a tile: a quarter of the registers, as many as its loads in flight take
constexpr std::int64_t kThreads = 128;    // a block's; tiles take many registers
constexpr std::int64_t kVectors = 16;     // of a weight block
constexpr std::int64_t kUnrolledChannels = 4;
constexpr std::int64_t kFewBlocks = 256;     // fewer leave multiprocessors idle
constexpr std::int64_t kLeastProducts = 32;  // of a part: taps times channels
constexpr std::int64_t kLongProduct = 64;    // times as long as another chain that is cut

class Tiles {
 public:
  Tiles(GroupKernel& kernel, Accumulators& accumulators, const TiledProblem& tiled, std::int64_t lanes)
      : kernel_(kernel),
        builder_(kernel.builder()),
        problem_(tiled.problem),
        tile_(tiled.tile),
        lanes_(lanes),
        packed_(tiled.packed),
        accumulators_(accumulators) {
    tiles_ = (problem_.columns.out + tile_.pixels - 1) / tile_.pixels;
    blocks_ = (problem_.across() + tile_.vectors * lanes_ - 1) / (tile_.vectors * lanes_);
    const std::int64_t items = problem_.images * problem_.rows.out * tiles_;
    const std::int64_t threads = floor_power_of_two(std::min(kThreads / tile_.vectors, 2 * items - 1));
    shares_ = share(items, threads, blocks_ * problem_.apart(), 1);
    if (!sums()) shares_ = {items, threads, threads, (items + threads - 1) / threads};
  }

  std::int64_t parts() const { return shares_.parts; }

  void emit(const std::vector<ir::MemId>& work, std::int64_t first_part) {
    work_ = work, first_part_ = first_part;
    const std::int64_t block = tile_.vectors * lanes_;
    if (!sums()) split_channels(blocks_ * shares_.parts, blocks_ * block);
    const std::int64_t planes = is_split() ? channel_shares_.parts : problem_.apart();
    along(builder_, planes, Binding::grid_z, [&](Index plane) {
      (is_split() ? channel_part_ : apart_) = plane;
      along(builder_, blocks_, Binding::grid_y, [&](Index b) {
        block_ = b;
        builder_.loop(Index(0), Index(shares_.parts), Binding::grid_x,
                      [&](Index part) { sums() ? with_sums(part) : without_sums(part); });
      });
    });
    if (is_split()) join();
  }

 private:
  bool sums() const { return !accumulators_.list().empty(); }
  bool pivots() const {
    return std::any_of(accumulators_.list().begin(), accumulators_.list().end(),
                       [](const auto& a) { return a.moments; });
  }
  bool is_split() const { return channel_shares_.parts > 1; }

  void split_channels(std::int64_t blocks, std::int64_t padded_outputs) {
    const std::int64_t groups = problem_.channels / kUnrolledChannels;
    channel_shares_ = {groups, 1, groups, 1};
    if (blocks >= kFewBlocks || problem_.groups > 1 || kernel_.context().library) return;
    const std::int64_t taps = problem_.rows.kernel * problem_.columns.kernel;
    const std::int64_t most = taps * problem_.channels / kLeastProducts;
    // What the parts leave is no more than what all of them read.
    const std::int64_t pixels = problem_.images * problem_.rows.out * problem_.columns.out;
    const std::int64_t read =
        problem_.channels * (problem_.images * problem_.rows.in * problem_.columns.in + taps * problem_.outputs);
    const std::int64_t parts =
        std::min({(kFewBlocks + blocks - 1) / blocks, most, groups, read / (pixels * problem_.outputs)});
    if (parts < 2) return;
    channel_shares_ = share_out(groups, 1, parts);
    if (is_long_product()) {
      const Split blocks_of_groups =
          in_blocks({groups, channel_shares_.chunk, channel_shares_.parts}, kBlockTerms / kUnrolledChannels);
      channel_shares_.chunk = blocks_of_groups.chunk, channel_shares_.parts = blocks_of_groups.chunks;
    }
    channel_work_ = builder_.work(problem_.compute, {channel_shares_.parts, problem_.images, problem_.rows.out,
                                                     problem_.columns.out, padded_outputs});
  }

  // The sums of all parts, and the epilogue.
  void join() {
    const std::vector<std::int64_t> extents = {problem_.images, problem_.rows.out, problem_.columns.out,
                                               problem_.outputs};
    JoiningSums joining{
        extents[0] * extents[1] * extents[2] * extents[3], channel_shares_.parts, problem_.compute, {}, {}};
    joining.load = [&](const Index& part, const Index& element) {
      std::vector<Index> at = decode(element, extents);
      at.insert(at.begin(), part);
      return builder_.load(channel_work_, at);
    };
    joining.done = [&](const Index& element, const Arg& sum) {
      const std::vector<Index> at = decode(element, extents);
      k_ = at[3];
      move_to(at[0], at[1], at[2]);
      kernel_.store_anchor(sum);
    };
    join_sums(kernel_, joining);
  }

  void without_sums(const Index& part) {
    along(builder_, shares_.threads, Binding::block_y, [&](Index thread) { vectors([&] { share_of(part, thread); }); });
  }

  void with_sums(const Index& part) {
    vectors([&] {
      const auto state = [&](Index thread) { return share_of(part, thread); };
      std::vector<Arg> joined;
      if (shares_.threads == 1) {
        joined = state(Index(0));
      } else {
        const auto ids = builder_.reduce({Index(0)}, {Index(shares_.threads)}, Binding::block_y,
                                         accumulators_.combiners(), accumulators_.types(), state);
        joined.assign(ids.begin(), ids.end());
      }
      real_outputs([&] {
        move_to(Index(0), Index(0), Index(0));
        const std::vector<Index> at = partial_index(kernel_, part + Index(first_part_), kernel_.point());
        for (std::size_t c = 0; c < work_.size(); ++c) builder_.store(work_[c], at, joined[c]);
      });
    });
  }

  void vectors(const std::function<void()>& body) {
    along(builder_, tile_.vectors, Binding::block_x, [&](Index vector) {
      each_lane(builder_, lanes_, [&](Index lane) {
        column_ = vector * lanes_ + lane;
        k_ = block_ * (tile_.vectors * lanes_) + column_;
        body();
      });
    });
  }

  // The tiles of one thread; answers with its partial sums.
  std::vector<Arg> share_of(const Index& part, const Index& thread) {
    if (sums()) {
      state_ = accumulators_.open(1);
      if (pivots()) first_ = builder_.local(MemKind::register_local, DType::i32, {1}, 1);
    }
    each_share(builder_, shares_, part, thread, [&](Index item) {
      const std::vector<Index> at = decode(item, {problem_.images, problem_.rows.out, tiles_});
      image_ = at[0], row_ = at[1], q_ = at[2] * tile_.pixels;
      one_tile();
    });
    if (!sums()) return {};
    return accumulators_.partial(state_, Index(0), share_count(builder_, shares_, part, thread, tile_.pixels));
  }

  void one_tile() {
    acc_ = builder_.local(MemKind::register_local, problem_.compute, {tile_.pixels}, 0);
    long_sum_ = is_long_product() ? LongSum(builder_, acc_) : LongSum();
    if (problem_.channels > 0) {
      serial(builder_, problem_.rows.kernel, [&](Index r) {
        const Index h = problem_.rows.input(row_, r);
        const auto row = [&] { serial(builder_, problem_.columns.kernel, [&](Index s) { channels(r, s, h); }); };
        problem_.rows.inside() ? row() : builder_.when(within(h, problem_.rows.in), row);
      });
    }
    if (long_sum_.is_open()) long_sum_.close(builder_);
    unrolled(builder_, tile_.pixels, [&](Index i) {
      const auto store = [&] {
        if (is_split()) {
          builder_.store(channel_work_, {channel_part_, image_, row_, q_ + i, k_}, builder_.load(acc_, {i}));
        } else {
          real_outputs([&] { epilogue(i); });
        }
      };
      if (problem_.columns.out % tile_.pixels == 0) return store();
      builder_.when({compare(q_ + i, CompareKind::lt, problem_.columns.out)}, store);
    });
  }

  // As on x86: a sum over very many channels, in blocks.
  bool is_long_product() const {
    return problem_.rows.kernel * problem_.columns.kernel == 1 &&
           is_long_chain(problem_.channels / kLongProduct, problem_.compute);
  }

  void channels(const Index& r, const Index& s, const Index& h) {
    const std::int64_t whole = problem_.channels / kUnrolledChannels, rest = problem_.channels % kUnrolledChannels;
    const auto group = [&](const Index& c) { multiply(r, s, h, c * kUnrolledChannels, kUnrolledChannels); };
    const auto last = [&] {
      if (rest > 0) multiply(r, s, h, Index(problem_.channels - rest), rest);
    };
    constexpr std::int64_t kGroupsOfABlock = kBlockTerms / kUnrolledChannels;
    const auto flush = [&] { long_sum_.flush(builder_); };
    if (is_split()) {
      if (long_sum_.is_open()) {
        loop_chunk_in_blocks(builder_, {channel_shares_.items, channel_shares_.chunk, channel_shares_.parts},
                             channel_part_, kGroupsOfABlock, group, flush);
      } else {
        each_share(builder_, channel_shares_, channel_part_, Index(0), group);
      }
      if (rest > 0) builder_.when({compare(channel_part_, CompareKind::eq, channel_shares_.parts - 1)}, last);
      return;
    }
    if (long_sum_.is_open()) {
      loop_in_blocks(builder_, whole, kGroupsOfABlock, group, flush);
    } else if (whole > 0) {
      serial(builder_, whole, group);
    }
    last();
  }

  // `count` channels: their weights first, then pixel by pixel, so that a pixel's channels are neighbouring loads.
  void multiply(const Index& r, const Index& s, const Index& h, const Index& first, std::int64_t count) {
    const ir::MemId weights = builder_.local(MemKind::register_local, problem_.compute, {count});
    unrolled(builder_, count, [&](Index u) { builder_.store(weights, {u}, weight_of(r, s, first + u)); });
    unrolled(builder_, tile_.pixels, [&](Index i) {
      const Index w = problem_.columns.input(q_ + i, s);
      const auto add = [&](Index u) {
        kernel_.expression().nested([&] {
          const Arg x = input(h, w, first + u);
          const Arg weight = builder_.load(weights, {u}), sum = builder_.load(acc_, {i});
          builder_.store(acc_, {i}, kernel_.multiply_add(x, weight, sum, problem_.compute));
        });
      };
      const auto body = [&] { unrolled(builder_, count, add); };
      const bool inside = problem_.columns.inside() && problem_.columns.out % tile_.pixels == 0;
      inside ? body() : builder_.when(within(w, problem_.columns.in), body);
    });
  }

  // Packed, or as it is: where it lies as it is read, and where a library takes the op.
  Arg weight_of(const Index& r, const Index& s, const Index& c) {
    if (packed_ >= 0) return builder_.load(packed_, packed_index(problem_, apart_, block_, r, s, c, column_));
    Expression& expression = kernel_.expression();
    return real_or_zero([&] {
      return expression.nested([&] {
        return problem_.weight(expression, problem_.group(apart_, k_), problem_.output(apart_, k_), r, s, c);
      });
    });
  }

  Arg input(const Index& h, const Index& w, const Index& c) {
    const auto load = [&] { return problem_.input(image_, h, w, problem_.group(apart_, k_), c); };
    return problem_.lanes_along_groups ? real_or_zero(load) : load();
  }

  // 0 in lanes beyond the last output.
  Arg real_or_zero(const std::function<Arg()>& load) {
    const bool whole = problem_.across() % (tile_.vectors * lanes_) == 0;
    return whole ? load() : value_or_zero(builder_, k_, problem_.across(), problem_.compute, load);
  }

  void move_to(const Index& image, const Index& row, const Index& q) {
    problem_.move_to(image, row, q, problem_.group(apart_, k_), problem_.output(apart_, k_));
  }

  void epilogue(const Index& i) {
    move_to(image_, row_, q_ + i);
    kernel_.expression().nested([&] {
      kernel_.expression().bind(kernel_.group().anchor, kernel_.here(), builder_.load(acc_, {i}));
      if (pivots()) {  // the first element of all is the pivot
        const Arg first = builder_.load(first_, {Index(0)});
        const Arg yes = builder_.def(Op::ne, {first, KernelBuilder::literal(0, DType::i32)}, DType::boolean);
        builder_.when(yes.value, [&] {
          kernel_.expression().nested([&] { accumulators_.set_pivots(state_, Index(0)); });
          builder_.store(first_, {Index(0)}, KernelBuilder::literal(0, DType::i32));
        });
      }
      kernel_.store_all(accumulators_.expressions());
      if (sums()) accumulators_.add(state_, Index(0), Index(0));
    });
  }

  // Lanes beyond the last output do nothing.
  void real_outputs(const std::function<void()>& body) {
    const std::int64_t extent = problem_.across();
    if (extent % (tile_.vectors * lanes_) == 0) return body();
    const bool single = extent == 1;  // `==` pins the lane, so that one writer is provable
    builder_.when({compare(k_, single ? CompareKind::eq : CompareKind::lt, single ? 0 : extent)}, body);
  }

  GroupKernel& kernel_;
  KernelBuilder& builder_;
  const TileProblem& problem_;
  const TileShape tile_;
  const std::int64_t lanes_;
  const ir::MemId packed_;
  Accumulators& accumulators_;
  Accumulators::State state_;
  std::vector<ir::MemId> work_;
  Shares shares_, channel_shares_;  // items: tiles; groups of channels
  ir::MemId channel_work_ = -1;
  Index channel_part_ = 0;
  std::int64_t tiles_ = 1, blocks_ = 1, first_part_ = 0;
  LongSum long_sum_;
  ir::MemId acc_ = -1, first_ = -1;
  Index apart_ = 0, block_ = 0, column_ = 0, k_ = 0, image_ = 0, row_ = 0, q_ = 0;
};

}  // namespace

TileShape choose_tile(const GroupKernel& kernel, const TileProblem& problem) {
  TileShape tile;
  const std::int64_t lanes = kernel.lanes();
  const bool sums = !kernel.group().reductions.empty();
  std::int64_t most = std::min(kMostPixels, kMostValues / lanes);
  // ptxas has all pixels' loads of an epilogue in flight, beside its sums: it spilled for the eighth pixel of two
  // arrays and for the seventh of four.
  if (sums) most = std::min(most, kMostPixels - std::min(kernel.elements_read() / 2, 2));
  const std::int64_t columns = problem.columns.out, vectors = (problem.across() + lanes - 1) / lanes;
  tile.vectors =
      static_cast<int>(problem.groups_adjoin() ? divisor_up_to(vectors, kVectors) : std::min(kVectors, vectors));
  tile.pixels = static_cast<int>(divisor_up_to(columns, most));
  // Sums need whole tiles; otherwise a ragged last tile is better than narrow ones.
  const std::int64_t tiles = (columns + most - 1) / most;
  if (!sums && tile.pixels < most / 2) tile.pixels = static_cast<int>((columns + tiles - 1) / tiles);
  return tile;
}

bool reads_whole_vectors(const TileProblem& problem, const TileShape& tile, std::int64_t lanes) {
  return problem.outputs_adjoin && !problem.groups_adjoin() && problem.outputs % (tile.vectors * lanes) == 0;
}

void emit_tiles(GroupKernel& kernel, const std::vector<TiledProblem>& problems, std::int64_t lanes) {
  Accumulators accumulators(kernel);
  std::vector<Tiles> emitters;
  for (const TiledProblem& tiled : problems) emitters.emplace_back(kernel, accumulators, tiled, lanes);
  emit_with_sums(kernel, accumulators, emitters, [&](const std::vector<ir::MemId>& work, std::int64_t parts) {
    std::vector<std::int64_t> kept;
    for (const Axis& axis : kernel.space().axes) kept.push_back(axis.reduced ? 1 : axis.extent);
    const TileProblem& any = problems.front().problem;
    combine_parts(kernel, accumulators, work, parts, pixels(problems), any.groups * any.outputs,
                  [&](const Index& element) { return decode(element, kept); });
  });
}

}  // namespace fusejit::scheduler::cuda
