// Contractions with weights, forward and by input: a tile of pixels times vectors of outputs, over the whole sum.
#include <algorithm>
#include <optional>

#include "scheduler/choose/x86_chooser.h"
#include "scheduler/lower/long_sum.h"
#include "scheduler/lower/split.h"

namespace fusejit::scheduler {
namespace {

class TilesOfPixels : X86Chooser {
 public:
  using X86Chooser::X86Chooser;

  Schedule run() {
    tiles_of_pixels();
    return s_;
  }

 private:
  // Weights are read for many pixels: a tile of pixels times vectors of outputs, over the whole sum.
  void tiles_of_pixels() {
    std::vector<int> images = roles_.pixels;
    const auto innermost = [&]() {
      const int d = images.empty() ? -1 : images.back();
      if (!images.empty()) images.pop_back();
      return d;
    };
    const int q = innermost(), p = innermost();
    const Window columns = window_of(q), rows = window_of(p);
    const std::vector<int> channel_dims = by_window(roles_.sums, roles_.pixels, c_).others;
    const std::int64_t channels = product(channel_dims), image_count = product(images);
    const bool has_groups = product(roles_.groups) > 1;
    choose_tile(p, q, channel_dims, image_count);
    const std::int64_t block = s_.block(), blocks = ir::ceil_divide<std::int64_t>(extent(vector_), block),
                       pixels = pixels_of_tile(), tiles = ir::ceil_divide(extent(q), pixels);
    s_.stream = fused_.result_bytes >= target_.l3_bytes / 2;

    if (const std::optional<Shares> shares = shares_of_weights(images, p, q, channel_dims)) {
      several_images(*shares, images[0], p, q);
      return sums_of_pixels(columns, rows, channel_dims, channels);
    }
    // One row, such as a matrix, is cut along its columns, unless some taps fall outside.
    const bool matrix = extent(p) == 1 && image_count == 1 && !columns.leaves;
    Split row_blocks = matrix ? Split{}
                       : both_along_groups()
                           ? rows_of_both_gradients(p, q)
                           : split(extent(p), small_ ? ir::ceil_divide(extent(p), rows_of_small_task(p, q))
                                                     : rows_wanted(p, q, image_count, channels, blocks));
    const bool overlap = rows.other >= 0 && extent(rows.other) > 1;
    if ((fused_.computes_a || small_) && !matrix && !overlap) row_blocks = in_equal_blocks(row_blocks);
    // Tasks that share out the outputs would each compute what a matrix is multiplied by.
    const bool whole_rows = fused_.computes_a && weights_stay_in_l2();
    const std::int64_t others = whole_rows ? product(roles_.groups) : blocks;
    const Split column_blocks =
        matrix ? split(tiles, ir::ceil_divide<std::int64_t>(target_.tasks, others)) : Split{tiles, tiles, 1};
    if (matrix) {
      if (column_blocks.chunks > 1) add(s_.tasks, name(q), column_blocks.chunk * pixels);
    } else {
      add_together(s_.tasks, images);
      if (row_blocks.chunks > 1) add(s_.tasks, name(p), row_blocks.chunk == 1 ? 0 : row_blocks.chunk);
    }
    outputs_loops(image_count * row_blocks.chunks * column_blocks.chunks);

    if (row_blocks.chunks == 1 || row_blocks.chunk > 1) add_if_any(s_.inner, p);
    add_if_any(s_.inner, q);
    Window of_task = columns;
    if (matrix) of_task.in = column_blocks.chunk * pixels;
    const bool panel = (!matrix || fused_.computes_a) && fits_panel(rows, of_task, row_blocks.chunk);
    const bool of_taps = panel && pairs_taps(columns, channels);
    if (of_taps) s_.dot = name(columns.other);
    sums_of_pixels(columns, rows, channel_dims, channels);
    const bool pairs_in_groups = !s_.dot.empty() && has_groups;  // they are no index of their own
    if (c_.terms() > 0 && (needs_panel(columns, channel_dims) || of_taps || small_) && panel && !pairs_in_groups)
      s_.panel_a = along_groups_ && !shares_out_outputs() ? s_.outer.back().dims[0] : Schedule::kTask;
    // The next row of a block of outputs, or the next task's of all (Nest::fetches_runs).
    if (reads_with_results(p) || small_ || (fused_.stores_a && extent(p) > 1)) {
      s_.fetch = {{name(p)}, row_blocks.chunk};
    } else if (does_little(p, block)) {
      s_.fetch = {{name(p)}, 1};
    } else if (!along_groups_ && !has_groups && extent(roles_.outputs) <= block && s_.vectors > 1 &&
               pixels < extent(q)) {
      s_.fetch = {{name(q)}, pixels};
    }
    if (c_.terms() > 0) lay_out_weights();
    if (s_.pack_b > 0) stream_weights(image_count * extent(p) * tiles);
  }

  // Its vectors and pixels, and whether its tasks are small.
  void choose_tile(int p, int q, const std::vector<int>& channel_dims, std::int64_t images) {
    const std::int64_t across = extent(vector_), width = extent(q);
    const bool has_groups = product(roles_.groups) > 1;
    // Along groups a lane without a group costs a masked access at every tap.
    const bool whole = across % s_.lanes == 0 && across % (2 * s_.lanes) != 0;
    s_.vectors = across > s_.lanes && !(has_groups && whole) ? 2 : 1;
    if (!has_groups && whole && across % (3 * s_.lanes) == 0 && has_many_registers()) s_.vectors = 3;
    const bool only_epilogue = c_.terms() == 0 && has_many_registers();  // pixels that no window touches: longer pieces
    if (only_epilogue && across % (tuning::kVectorsWithoutTerms * s_.lanes) == 0)
      s_.vectors = tuning::kVectorsWithoutTerms;
    if (both_along_groups()) s_.vectors = vectors_along_groups(c_.terms());
    small_ = ((fused_.stores_a || (fused_.beside_gradient && !along_groups_)) && weights_stay_in_l2()) ||
             has_small_tasks(p, q, channel_dims, images);
    const std::int64_t most = only_epilogue ? tuning::kPixelsWithoutTerms : most_pixels(q, p, channel_dims),
                       pixels = ir::ceil_divide(width, ir::ceil_divide<std::int64_t>(width, most));  // 26 are 2 x 13
    if (pixels > 1) s_.tile = {{{name(q)}, pixels}};
  }
  bool both_along_groups() const { return fused_.beside_gradient && along_groups_; }

  // Of single taps that move much for what they compute, or compute what they read, all that a task touches, and the
  // next one's that comes meanwhile, stays in a part of L2, where L1 waits for it and L3 is far: what is read in a
  // panel, which is fetched line by line as no window is. Weights pass for each of those tasks. So are those that store
  // what they copy, everywhere: memory would have nothing to do while they compute.
  bool has_small_tasks(int p, int q, const std::vector<int>& channel_dims, std::int64_t images) const {
    return weights_may_pass() && c_.a.dtype == DType::f32 && !fused_.concatenates && c_.terms() > 0 &&
           c_.terms() == product(channel_dims) && !along_groups_ && product(roles_.groups) == 1 && extent(p) > 1 &&
           extent(vector_) > s_.block() &&
           (fused_.computes_a || (does_little(p, s_.block()) && leaves_caches(p, q, images))) &&
           2 * images * ir::ceil_divide(extent(p), rows_of_small_task(p, q)) >= wanted_tasks();
  }
  bool weights_may_pass() const { return waits_for_l2(target_) && weights_stay_in_l2(); }
  // Beside what small tasks touch.
  bool weights_stay_in_l2() const { return 2 * weights_bytes() <= target_.l2_bytes; }
  std::int64_t weights_bytes() const { return c_.terms() * extent(vector_) * bytes(fused_.compute); }
  // Else a copy costs more than it saves.
  bool leaves_caches(int p, int q, std::int64_t images) const {
    const std::int64_t read = images * extent(p) * elements_of_row(p, q) * bytes(fused_.compute);
    return read + fused_.result_bytes >= tuning::kOperandsOfL2 * target_.l2_bytes;
  }
  std::int64_t elements_of_row(int p, int q) const { return window_of(p).stride * window_of(q).in * c_.terms(); }
  std::int64_t rows_of_small_task(int p, int q) const {
    const std::int64_t read = elements_of_row(p, q), touched = extent(q) * extent(vector_) * (1 + fused_.elements_read),
                       part = fused_.beside_gradient  ? tuning::kRowsOfBothGradients
                              : waits_for_l2(target_) ? tuning::kSmallTasksOfL2
                                                      : tuning::kStoringTasksOfL2;
    return std::clamp<std::int64_t>(target_.l2_bytes / part / ((read + touched) * bytes(fused_.compute)), 1, extent(p));
  }

  // Images and outputs of a task, where L2 does not hold all weights and there are many tiles: tasks of a few rows
  // would each read all weights from behind it. Those that move the fewest bytes. Where an epilogue reads tensors,
  // tasks of rows fetch them for each other, which is more than weights cost (0.74 to 0.9 of the time of input
  // gradients of ResNet-50's last stages, Zen 5), unless L3 is far.
  struct Shares {
    std::int64_t images, outputs;
    bool panel;
  };
  std::optional<Shares> shares_of_weights(const std::vector<int>& images, int p, int q,
                                          const std::vector<int>& channel_dims) const {
    if (along_groups_ || product(roles_.groups) > 1 || images.size() != 1 || fused_.stores_a) return std::nullopt;
    if (reads_with_results(p) && !waits_for_l2(target_)) return std::nullopt;
    const std::int64_t count = extent(images[0]), outputs = extent(vector_), block = s_.block(),
                       weights = weights_bytes() / (has_pairs_of_channels(channel_dims) ? 2 : 1);
    const std::int64_t tiles = count * extent(p) * ir::ceil_divide(extent(q), pixels_of_tile());
    if (tiles <= tuning::kMostTilesOfStream || weights <= target_.l2_bytes || outputs % block != 0) return std::nullopt;
    const bool panel = needs_panel(window_of(q), channel_dims);
    const std::int64_t image = panel_bytes(window_of(p), window_of(q), extent(p), channels_of_panel());
    const auto cost_of = [&](std::int64_t parts, std::int64_t shares) {
      const auto moved = static_cast<double>(parts * weights),
                 read = static_cast<double>(shares * count * image) * (panel ? tuning::kCostOfSharedPanel : 1);
      const std::int64_t few = ir::ceil_divide<std::int64_t>(target_.tasks, parts * shares);
      return (moved + read) * static_cast<double>(few);
    };
    std::optional<Shares> best;
    double least = 0;
    for (std::int64_t share = block; share <= outputs; share += block) {
      for (std::int64_t several = 1; several <= count && outputs % share == 0; ++several) {
        if (count % several != 0 || (panel && several * image > target_.l2_bytes / 2)) continue;
        const double cost = cost_of(count / several, outputs / share);
        if (!best || cost < least) best = {several, share, panel}, least = cost;
      }
    }
    return best;
  }

  void several_images(const Shares& of_task, int image, int p, int q) {
    const std::int64_t block = s_.block();
    if (of_task.outputs < extent(vector_)) add(s_.tasks, s_.vector, of_task.outputs == block ? 0 : of_task.outputs);
    if (of_task.images < extent(image)) add(s_.tasks, name(image), of_task.images == 1 ? 0 : of_task.images);
    if (of_task.outputs > block) add(s_.outer, s_.vector);
    if (of_task.images > 1) add(s_.inner, name(image));
    add_if_any(s_.inner, p);
    add_if_any(s_.inner, q);
    if (of_task.panel) s_.panel_a = Schedule::kTask;
    s_.pack_b = block;
  }

  std::int64_t pixels_of_tile() const { return s_.tile.empty() ? 1 : s_.tile[0].count; }

  // Copies of the tile for the edges of an image would spill, where many taps share inputs or weights come early.
  bool needs_panel(const Window& columns, const std::vector<int>& channel_dims) const {
    const bool spills_at_edges = columns.leaves && !along_groups_ &&
                                 (product(channel_dims) < tuning::kFewChannels ||
                                  (has_pairs_of_channels(channel_dims) && pixels_of_tile() > tuning::kFewPixels));
    return fused_.computes_a || spills_at_edges;
  }

  // Where one task computes all that a block of outputs is needed for, it copies the block itself; but weights, which
  // may stay the same from run to run, are packed beforehand.
  void lay_out_weights() {
    const bool by_blocks = s_.outer.empty() && s_.tasks.size() == 1 && s_.tasks[0].dims[0] == s_.vector;
    const std::int64_t block = c_.terms() * s_.block() * bytes(fused_.compute);
    if (fused_.b_of_step && by_blocks && s_.dot.empty() && block <= target_.l2_bytes / 4) {
      s_.panel_b = Schedule::kTask;
    } else {
      s_.pack_b = s_.block();
    }
  }

  // Each task fetches the next one's panel as far as it has rows itself: a last block of few rows would leave that to
  // the copy.
  static Split in_equal_blocks(const Split& blocks) {
    std::int64_t rows = blocks.chunk;
    while (blocks.count % rows != 0) --rows;
    return 2 * rows > blocks.chunk ? split(blocks.count, blocks.count / rows) : blocks;
  }

  // Of a tile.
  std::int64_t most_pixels(int q, int p, const std::vector<int>& channel_dims) const {
    const Window columns = window_of(q);
    const std::int64_t channels = product(channel_dims);
    const bool shares = shares_inputs(columns, channels);
    std::int64_t most = tuning::kMostPixels;
    if (shares && !along_groups_) {
      most = tuning::kSharingPixels;
    } else if (shares && has_many_registers() && columns.stride == 1 && extent(columns.other) > 2 &&
               columns.in <= tuning::kNarrowRow) {
      most = tuning::kNarrowRowPixels;
    } else if (along_groups_ || channels < tuning::kFewChannels || reads_with_results(p) ||
               (small_ && extent(q) > tuning::kMostPixels) ||
               (has_many_registers() && (small_tiles_win(channel_dims) || does_without_panel(q, channel_dims)))) {
      // Along groups an epilogue comes after few products, and its own registers count for more; what small tasks fetch
      // beside products made LLVM spill tiles of 14, which gain 0.98 to 1.03 there.
      most = tuning::kFewPixels;
    }
    return std::min(vectors_in_registers(), most);
  }

  bool is_shared_out(const std::string& dim) const {
    return std::any_of(s_.tasks.begin(), s_.tasks.end(),
                       [&](const auto& loop) { return std::count(loop.dims.begin(), loop.dims.end(), dim) > 0; });
  }
  bool shares_out_outputs() const { return is_shared_out(s_.vector); }

  // A panel of what the rows of a task read, unless tasks that share out the outputs would each compute it.
  bool fits_panel(const Window& rows, const Window& columns, std::int64_t rows_of_task) const {
    return (!shares_out_outputs() || along_groups_) &&
           panel_bytes(rows, columns, rows_of_task, channels_of_panel()) <= target_.l2_bytes / 2;
  }
  // A block of groups, or all that tasks do not share out, each with the channels that are summed up.
  std::int64_t channels_of_panel() const {
    std::int64_t groups = along_groups_ ? s_.block() : 1;
    for (const int g : roles_.groups)
      if (!along_groups_ && !is_shared_out(name(g))) groups *= extent(g);
    return groups * product(by_window(roles_.sums, roles_.pixels, c_).others);
  }

  // Of few channels, which make no pairs: taps of a row do, where the window moves by whole pairs.
  bool pairs_taps(const Window& columns, std::int64_t channels) const {
    return columns.other >= 0 && dot2_wins() && !along_groups_ && product(roles_.groups) == 1 &&
           channels < tuning::kFewChannels && channels % 2 != 0 && extent(columns.other) > 1 &&
           columns.stride % 2 == 0 && window_of(columns.other).stride == 1;
  }

  // Groups and blocks of outputs: parallel where the rest gives too few tasks.
  void outputs_loops(std::int64_t parts) {
    std::vector<int> apart = roles_.groups;
    if (along_groups_) apart = {roles_.outputs};
    const bool copies =
        roles_.adjoin && !along_groups_ && product(apart) > 1 && extent(roles_.outputs) % s_.block() != 0;
    const bool parallel = (along_groups_ || parts * 2 < wanted_tasks()) && !copies && !fused_.stores_a;
    const bool by_groups = parallel && product(apart) > 1;
    add_together(by_groups ? s_.tasks : s_.outer, apart);
    add_if_any(parallel && !by_groups ? s_.tasks : s_.outer, vector_);
  }

  // Weights that L2 does not hold, for few tiles of pixels: tasks are sorted by blocks of outputs, so that a block's
  // weights come from far once, while the tiles of the block before it are computed.
  void stream_weights(std::int64_t tiles) {
    const auto over_outputs = [&](const ScheduledLoop& loop) { return loop.dims[0] == s_.vector; };
    const auto outputs = std::find_if(s_.tasks.begin(), s_.tasks.end(), over_outputs);
    const std::int64_t weights = weights_bytes() / (s_.dot.empty() ? 1 : 2);
    if (along_groups_ || outputs == s_.tasks.end() || product(roles_.groups) > 1) return;
    if (weights < target_.l2_bytes / tuning::kStreamedWeightsOfL2 || tiles > tuning::kMostTilesOfStream) return;
    std::rotate(s_.tasks.begin(), outputs, outputs + 1);
    s_.fetch = {{s_.vector}, s_.block()};
  }

  // A panel has what the next task's has too, so that fewer tasks compute less.
  std::int64_t wanted_tasks() const {
    return fused_.computes_a ? std::min(target_.tasks, tuning::kTasksOfPanels) : target_.tasks;
  }

  // Row blocks so that there are enough tasks and a block's input stays in a quarter of L2. Groups share no input, so
  // there each block of them may be a task.
  std::int64_t rows_wanted(int p, int q, std::int64_t images, std::int64_t channels, std::int64_t blocks) const {
    if (along_groups_) {
      const std::int64_t outputs = extent(roles_.outputs), without = images * (outputs > 1 ? outputs : blocks),
                         for_tasks = ir::ceil_divide<std::int64_t>(target_.tasks, without);
      const std::int64_t of_panel = extent(p) * window_of(p).stride * window_of(q).in * s_.block() * 4,
                         for_panel =
                             fused_.computes_a ? of_panel / std::max<std::int64_t>(1, target_.l2_bytes / 4) + 1 : 1;
      return std::min(extent(p), std::max(for_tasks, for_panel));
    }
    const std::int64_t row_bytes = window_of(q).in * product(roles_.groups) * channels * 4 * window_of(p).stride;
    // Beside sums, half of that where L1 waits for L2.
    const bool half = weights_may_pass() && fused_.sums && !fused_.computes_a;
    const std::int64_t part = half || fused_.stores_a ? tuning::kSmallTasksOfL2 : 4;
    const std::int64_t for_cache = extent(p) * row_bytes / std::max<std::int64_t>(1, target_.l2_bytes / part) + 1;
    // What the epilogue touches is in pieces of a block of outputs: all blocks of the same lines while L2 has them, and
    // those that are fetched for the next task. Where L3 is far, less of single taps, and of a strided gradient the
    // elements without products too.
    const bool less = weights_may_pass() && c_.terms() == channels;
    const std::int64_t touched =
        (less ? fused_.result_bytes / (images * extent(p)) : extent(q) * extent(vector_) * bytes(c_.a.dtype)) *
        (1 + fused_.elements_read);
    const std::int64_t of_l2 =
        reads_with_results(p) ? target_.l2_bytes / (less ? tuning::kSmallTasksOfL2 : 4) : target_.l2_bytes;
    // More rows than fit only where those are few pixels; where L3 is far, to which that is not known to apply, half as
    // many again.
    const auto at_least_one = [](std::int64_t count) { return std::max<std::int64_t>(1, count); };
    const std::int64_t rows = std::max(at_least_one(of_l2 / at_least_one(touched)),
                                       ir::ceil_divide(tuning::kLeastPixelsOfTask, at_least_one(extent(q)))),
                       blocks_of_rows =
                           less ? ir::ceil_divide(extent(p) * touched, of_l2) : ir::ceil_divide(extent(p), rows),
                       for_epilogue = blocks > 1 && fused_.elements_read > 0 ? blocks_of_rows : 1;
    return std::min(extent(p),
                    std::max({for_cache, for_epilogue, ir::ceil_divide<std::int64_t>(wanted_tasks(), images)}));
  }

  // Taps, row by row, then channels.
  void sums_of_pixels(const Window& columns, const Window& rows, const std::vector<int>& channel_dims,
                      std::int64_t channels) {
    for (const int d : roles_.sums) {
      if (std::find(channel_dims.begin(), channel_dims.end(), d) != channel_dims.end()) continue;
      if (d == columns.other && shares_inputs(columns, channels)) {
        if (extent(d) > 1) s_.unroll.push_back({{name(d)}, extent(d)});
        continue;
      }
      const bool bounds = d == rows.other && rows.leaves;  // a loop of one tap has bounds that may be empty
      if (extent(d) > 1 || bounds) add(s_.inner, name(d));
      if (name(d) == s_.dot) s_.unroll.push_back({{name(d)}, 2});
    }
    for (const int d : channel_dims) {
      const bool dot = s_.dot.empty() && d == c_last() && multiplies_pairs(d);
      if (dot) s_.dot = name(d);
      const std::int64_t most = tuning::kUnrolledChannels * (dot ? 2 : 1);
      const bool all = extent(d) < 2 * most;
      const std::int64_t unrolled = all ? extent(d) : most;
      if (unrolled > 1) s_.unroll.push_back({{name(d)}, unrolled});
      if (!all) add(s_.inner, name(d));
    }
    const int last = channel_dims.empty() ? -1 : channel_dims.back();
    const bool one_tap = c_.terms() == channels;
    if (last >= 0 && one_tap && is_long_sum(channels / tuning::kLongProduct, fused_.compute))
      s_.flush = {{name(last)}, kBlockTerms};
  }

  // Neighbouring outputs share inputs where the taps of a row are unrolled. Along lanes that saves loads, and small
  // tiles of one channel gain. Elsewhere LLVM keeps every broadcast for the next tap, which spills: half the speed of a
  // 7x7 stem.
  bool shares_inputs(const Window& columns, std::int64_t channels) const {
    if (columns.other < 0 || extent(columns.other) == 1) return false;
    const std::int64_t terms = extent(columns.other) * channels;
    if (along_groups_) return channels < tuning::kFewChannels && terms <= tuning::kMostUnrolledTerms;
    return target_.vector_registers() == 16 && terms <= tuning::kMostSharedTerms;
  }

  // Where tuning::kFewPixels are as good as any tile, or better.
  bool small_tiles_win(const std::vector<int>& channel_dims) const {
    return target_.fma_per_cycle < 2 || (target_.dot2_is_faster && !has_pairs_of_channels(channel_dims));
  }
  bool has_pairs_of_channels(const std::vector<int>& channel_dims) const {
    return !channel_dims.empty() && channel_dims.back() == c_last() && multiplies_pairs(c_last());
  }

  // Rows of more than two tiles have some at no edge. Of pairs, those at the edges would spill, and all would be read
  // from a panel, which a task of few rows copies for little; small tiles do not spill. One image of 64 channels at
  // 56x56 takes 0.78 to 0.94 of the time, 16 take 0.965; rows of two tiles 1.01 and more (Zen 5).
  bool does_without_panel(int q, const std::vector<int>& channel_dims) const {
    return has_pairs_of_channels(channel_dims) && window_of(q).leaves && !fused_.computes_a &&
           extent(q) > 2 * tuning::kMostPixels;
  }

  // So little arithmetic for each output that memory is what the tile waits for.
  bool does_little(int p, std::int64_t block) const {
    if (extent(p) == 1) return false;
    const bool adjoin = extent(roles_.outputs) <= block;  // the pixels of a row, in one stream
    if (!along_groups_ && (product(roles_.groups) > 1 || adjoin)) return false;
    return c_.terms() <= tuning::kFewProducts;
  }

  // What the epilogue reads beside each result: fetched for the next task by all blocks of outputs of this one, run by
  // run, it comes while products are added up.
  bool reads_with_results(int p) const {
    const bool adjoin = extent(roles_.outputs) <= s_.block();
    return !along_groups_ && fused_.elements_read > 0 && extent(p) > 1 && product(roles_.groups) == 1 && !adjoin &&
           extent(vector_) % s_.block() == 0;
  }

  bool small_ = false;  // tasks
};

}  // namespace

Schedule x86_pixels(const ir::Contraction& contraction, const Target& target, const FusedWork& fused) {
  return TilesOfPixels(contraction, target, fused).run();
}

}  // namespace fusejit::scheduler
