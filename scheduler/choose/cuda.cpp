// CUDA without a library. A thread holds a tile of pixels times one vector of outputs; threads side by side (block.x)
// take the vectors of a block of weights, so weights load coalesced and inputs are broadcast. Tiles are shared out to
// block.y and the grid. Sums of an epilogue stay with the thread until its share is done.
#include <algorithm>

#include "ir/base/check.h"
#include "scheduler/choose/roles.h"
#include "scheduler/choose/tuning.h"
#include "scheduler/lower/cuda/threads.h"
#include "scheduler/lower/long_sum.h"
#include "scheduler/lower/split.h"
#include "scheduler/schedule/dims.h"

namespace fusejit::scheduler {
namespace {

using cuda::floor_power_of_two;
using cuda::kBlock;
using cuda::partition;
using cuda::Partition;
using cuda::partition_for_device;

class CudaChooser {
 public:
  CudaChooser(const ir::Contraction& c, const FusedWork& fused)
      : c_(c), fused_(fused), roles_(roles_of(c)), lanes_(fused.lanes) {
    along_groups_ = runs_along_groups(roles_, c);
    vector_ = along_groups_ ? roles_.groups.front() : roles_.outputs;
    s_.vector = name(vector_), s_.lanes = lanes_;
  }

  Schedule run() {
    c_.b.weights ? tiles_of_pixels() : along_groups_ ? sums_along_groups() : tiles_of_weights();
    s_.registers = registers();
    return s_;
  }

 private:
  const std::string& name(int d) const { return c_.dims[static_cast<std::size_t>(d)].name; }
  std::int64_t extent(int d) const { return c_.dims[static_cast<std::size_t>(d)].extent; }
  std::int64_t product(const std::vector<int>& dims) const { return combinations_of(c_, dims); }
  std::vector<std::string> names(const std::vector<int>& dims) const { return names_of(c_, dims); }
  void task(ir::Binding bound, std::vector<std::string> dims, std::int64_t step = 0) {
    s_.tasks.push_back({std::move(dims), step, 0, bound});
  }

  // Blocks of outputs: as many vectors side by side as `most`. A depthwise convolution reads as many channels as it
  // writes: where the last block has fewer, each lane asks whether it has one, and none loads a vector at once.
  void outputs_of_block(std::int64_t most, std::int64_t vectors) {
    const std::int64_t all = ir::ceil_divide<std::int64_t>(extent(vector_), lanes_);
    vectors_ = vectors > 0 ? vectors : std::min(most, all);
    if (const std::int64_t even = divisor_up_to(all, most); along_groups_ && 2 * even >= vectors_) vectors_ = even;
    blocks_ = ir::ceil_divide<std::int64_t>(extent(vector_), vectors_ * lanes_);
  }
  void grid_of_outputs() {
    if (blocks_ > 1) task(ir::Binding::grid_y, {s_.vector}, vectors_ * lanes_);
  }
  void block_of_outputs() {
    task(ir::Binding::block_x, {s_.vector});
    threads_ *= vectors_;
  }
  // What a thread may take. The compiler would save registers for one block more of a multiprocessor, and spill, where
  // a thread holds a tile or the state of a tree.
  std::int64_t registers() const {
    const std::int64_t words = bytes(fused_.compute) / 4;
    std::int64_t terms = 1;  // of the second operand, at hand together
    for (const Extent& extent : s_.unroll) terms *= s_.unroll_within ? extent.count : 1;
    const std::int64_t sums = fused_.sums ? fused_.words_of_sums : 0;
    const std::int64_t held =
        lanes_ * ((s_.accumulators() + terms) * words + sums + (s_.flush.dims.empty() ? 0 : 2 * s_.accumulators()));
    const bool trees = std::any_of(s_.inner.begin(), s_.inner.end(), [](const auto& loop) { return loop.stride > 0; });
    const std::int64_t of_trees = !trees ? 0 : lanes_ * (fused_.sums ? sums : s_.accumulators() * words);
    const bool f64 = fused_.compute == DType::f64;
    if (!trees && held < tuning::kTileWords && !f64)
      return threads_ < tuning::kSmallBlock ? tuning::kRegistersOfSmallTile : 0;
    if (f64 && (fused_.functions || held >= tuning::kManyWordsOfF64)) return tuning::kRegistersOfWideFunctions;
    // Small tiles and trees wait for memory, and more threads hide that.
    const bool waits = !trees || (lanes_ > 1 && of_trees <= tuning::kFewTreeWords);
    const bool few = waits && !f64 && !fused_.functions && held <= tuning::kFewTileWords && threads_ > 128;
    if (!few) return tuning::kRegistersOfTile;
    return threads_ < 256 ? tuning::kRegistersOfSmallTile : tuning::kRegistersOfWideBlock;
  }

  void tiles_of_pixels() {
    const std::vector<int>& pixels = roles_.pixels;
    const int q = pixels.back();
    const std::int64_t width = extent(q);
    std::int64_t most = std::min(tuning::kMostPixelsOfThread, tuning::kMostValuesOfThread / lanes_);
    // ptxas has all pixels' loads of an epilogue in flight, beside its sums: it spilled for the eighth pixel of two
    // arrays and for the seventh of four.
    if (fused_.sums)
      most = std::min(most, tuning::kMostPixelsOfThread - std::min<std::int64_t>(fused_.elements_read / 2, 2));
    const std::int64_t vectors = ir::ceil_divide<std::int64_t>(extent(vector_), lanes_);
    const bool adjoin = roles_.adjoin && !along_groups_ && product(roles_.groups) > 1;
    outputs_of_block(tuning::kVectorsOfBlock, adjoin ? divisor_up_to(vectors, tuning::kVectorsOfBlock) : 0);
    std::int64_t held = divisor_up_to(width, most);
    // Sums need whole tiles; otherwise a ragged last tile is better than narrow ones.
    if (!fused_.sums && held < most / 2)
      held = ir::ceil_divide<std::int64_t>(width, ir::ceil_divide<std::int64_t>(width, most));
    if (held > 1) s_.tile = {{{name(q)}, held}};

    const std::vector<int> apart = along_groups_ ? std::vector<int>{roles_.outputs} : roles_.groups;
    std::int64_t items = ir::ceil_divide<std::int64_t>(width, held);
    for (const int d : pixels)
      if (d != q) items *= extent(d);
    const std::int64_t threads = floor_power_of_two(std::min(tuning::kThreadsOfTiles / vectors_, 2 * items - 1));
    Partition spread = partition_for_device(items, threads, blocks_ * product(apart), 1);
    if (!fused_.sums) spread = {items, threads, threads, ir::ceil_divide<std::int64_t>(items, threads)};

    const std::vector<int> channel_dims = by_window(roles_.sums, roles_.pixels, c_).others;
    const int channel = channel_dims.empty() ? -1 : channel_dims.back();
    const std::int64_t channels = channel < 0 ? 1 : extent(channel), taps = channels > 0 ? c_.terms() / channels : 0;
    const bool is_long = taps == 1 && is_long_sum(channels / tuning::kLongProduct, fused_.compute);
    const std::int64_t cut = fused_.sums ? 0 : channels_of_part(blocks_ * spread.parts, channels, taps, is_long);

    if (cut > 0) {
      task(ir::Binding::grid_z, {name(channel)}, cut);
    } else if (product(apart) > 1) {
      task(ir::Binding::grid_z, names(apart));
    }
    grid_of_outputs();
    const std::vector<std::string> together = names(pixels);
    task(ir::Binding::grid_x, together, spread.chunk);
    if (!fused_.sums && spread.threads > 1) task(ir::Binding::block_y, together);
    threads_ = spread.threads;
    block_of_outputs();
    if (fused_.sums && spread.threads > 1) s_.inner.push_back({together, 0, spread.threads, ir::Binding::block_y});
    if (fused_.sums || spread.threads == 1) s_.inner.push_back({together});
    for (const int d : roles_.sums) {
      if (d == channel) continue;
      if (extent(d) > 1) s_.inner.push_back({{name(d)}});
    }
    if (channel >= 0 && channels > 1) {
      const std::int64_t unrolled = std::min(channels, tuning::kUnrolledChannels);
      s_.unroll = {{{name(channel)}, unrolled}};
      s_.unroll_within = true;
      if (channels > unrolled) s_.inner.push_back({{name(channel)}});
    }
    if (is_long) s_.flush = {{name(channel)}, kBlockTerms};
    if (cut > 0) {
      s_.combine = together;
      s_.combine.push_back(name(roles_.outputs));
    }
    const bool whole = extent(vector_) % (vectors_ * lanes_) == 0;
    const bool as_it_is = fused_.b_lies_by_outputs && !adjoin && whole && !along_groups_;
    if (c_.terms() > 0 && !fused_.library && !as_it_is) s_.pack_b = vectors_ * lanes_;
  }

  // Where pixels and outputs give a device too few blocks, channels are shared out too: so many a part; 0: all.
  std::int64_t channels_of_part(std::int64_t blocks, std::int64_t channels, std::int64_t taps, bool is_long) const {
    const std::int64_t steps = channels / tuning::kUnrolledChannels;
    if (blocks >= tuning::kFewBlocks || product(roles_.groups) > 1 || fused_.library || steps < 2) return 0;
    // What the parts leave is no more than what all of them read.
    const std::int64_t pixels = product(roles_.pixels), outputs = extent(roles_.outputs);
    std::int64_t elements = 1;
    for (const std::int64_t e : c_.a.extents) elements *= e;
    const std::int64_t read = elements + channels * taps * outputs;
    const std::int64_t parts =
        std::min({ir::ceil_divide<std::int64_t>(tuning::kFewBlocks, blocks),
                  taps * channels / tuning::kLeastProductsOfPart, steps, read / (pixels * outputs)});
    if (parts < 2) return 0;
    const Partition spread = partition(steps, 1, parts);
    std::int64_t chunk = spread.chunk;
    if (is_long) chunk = in_blocks({steps, chunk, spread.parts}, kBlockTerms / tuning::kUnrolledChannels).chunk;
    return chunk >= steps ? 0 : chunk * tuning::kUnrolledChannels;
  }

  // A thread holds some channels times one vector of outputs for one tap while the rows of its part pass.
  void tiles_of_weights() {
    const int channel = by_window(roles_.pixels, roles_.sums, c_).others.back();
    std::vector<int> items_of = roles_.groups;
    items_of.insert(items_of.end(), roles_.pixels.begin(), roles_.pixels.end());
    outputs_of_block(tuning::kVectorsOfBlock, 0);
    const std::int64_t held = divisor_up_to(extent(channel), tuning::kChannelsOfThread);
    if (held > 1) s_.tile = {{{name(channel)}, held}};
    const std::int64_t items = product(items_of) / held;
    const std::int64_t most = std::min(items, kBlock / vectors_);
    const auto [rows, q] = rows_and_columns();
    const auto in_parts = [&, &of = rows](std::int64_t threads) {
      return partition_for_device(product(of), 1, ir::ceil_divide<std::int64_t>(items, threads) * blocks_,
                                  tuning::kLeastRowsOfPart);
    };
    // No thread without an item with groups, where the quotient that is the group would lose its bound, nor where the
    // rows of the last part are fewer and one index of the image has a row and a tap: one condition alone is proven.
    const bool whole = product(roles_.groups) > 1 || (!in_parts(most).even() && meet(rows, items_of));
    const std::int64_t threads = whole ? divisor_up_to(items, most) : most;
    const Partition spread = in_parts(threads);
    if (spread.parts > 1) task(ir::Binding::grid_z, names(rows), spread.chunk);
    grid_of_outputs();
    task(ir::Binding::grid_x, names(items_of), threads);
    if (threads > 1) task(ir::Binding::block_y, names(items_of));
    threads_ = threads;
    block_of_outputs();
    if (threads == 1) s_.outer.push_back({names(items_of)});
    s_.inner.push_back({names(rows)});
    if (extent(q) > 1) s_.inner.push_back({{name(q)}});
    s_.combine = names(roles_.pixels);
    for (const int d : roles_.groups) s_.combine.push_back(name(d));
    s_.combine.push_back(s_.vector);
  }

  // A thread holds some taps of one vector of groups while the rows of its share pass; threads meet in trees.
  void sums_along_groups() {
    const auto [tap_dims, channels] = by_window(roles_.pixels, roles_.sums, c_);
    const auto [rows, q] = rows_and_columns();
    const std::int64_t taps = product(tap_dims), apart = extent(roles_.outputs) * product(channels);
    outputs_of_block(tuning::kVectorsOfBlock, 0);
    const Partition spread = partition_for_device(
        product(rows), floor_power_of_two(std::min(kBlock / vectors_, product(rows))),
        blocks_ * apart * ir::ceil_divide<std::int64_t>(taps, tuning::kTapsOfThread), tuning::kLeastRowsOfThread);
    std::vector<int> apart_dims{roles_.outputs};
    apart_dims.insert(apart_dims.end(), channels.begin(), channels.end());
    if (apart > 1) task(ir::Binding::grid_z, names(apart_dims));
    if (spread.parts > 1) task(ir::Binding::grid_y, names(rows), spread.chunk);
    threads_ = spread.threads;
    task(ir::Binding::grid_x, {s_.vector}, vectors_ * lanes_);
    block_of_outputs();
    if (taps > 1) {
      s_.tile = {{names(tap_dims), std::min(tuning::kTapsOfThread, taps)}};
      s_.inner.push_back({s_.tile[0].dims});
    }
    if (spread.threads > 1) s_.inner.push_back({names(rows), 0, spread.threads, ir::Binding::block_y});
    s_.inner.push_back({names(rows)});
    if (extent(q) > 1) s_.inner.push_back({{name(q)}});
    s_.combine = names(tap_dims);
    s_.combine.push_back(s_.vector);
    for (const int d : apart_dims) s_.combine.push_back(name(d));
  }

  // One index of the first operand has the outermost dims of both lists, which conditions of threads are about.
  bool meet(const std::vector<int>& one, const std::vector<int>& other) const {
    const auto outermost = [&](const std::vector<int>& dims) {
      return *std::find_if(dims.begin(), dims.end() - 1, [&](int d) { return extent(d) > 1; });
    };
    const int a = outermost(one), b = outermost(other);
    return std::any_of(c_.a.index.begin(), c_.a.index.end(),
                       [&](const ir::DimSum& sum) { return sum.coefficient_of(a) != 0 && sum.coefficient_of(b) != 0; });
  }

  // Of what a weight gradient sums up: all rows of all images, and the columns of a row.
  std::pair<std::vector<int>, int> rows_and_columns() const {
    return {{roles_.sums.begin(), roles_.sums.end() - 1}, roles_.sums.back()};
  }

  const ir::Contraction& c_;
  const FusedWork& fused_;
  const Roles roles_;
  const std::int64_t lanes_;
  bool along_groups_ = false;
  int vector_ = -1;
  std::int64_t vectors_ = 1, blocks_ = 1;
  std::int64_t threads_ = 1;  // of a block
  Schedule s_;
};

}  // namespace

std::vector<Schedule> cuda_candidates(const ir::Contraction& contraction, const FusedWork& fused) {
  if (std::optional<Schedule> shared = cuda_shared_panels(contraction, fused)) return {*std::move(shared)};
  return {CudaChooser(contraction, fused).run()};
}

}  // namespace fusejit::scheduler
