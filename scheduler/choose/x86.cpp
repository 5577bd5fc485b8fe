#include <algorithm>

#include "ir/base/check.h"
#include "scheduler/choose/roles.h"
#include "scheduler/choose/tuning.h"
#include "scheduler/lower/long_sum.h"
#include "scheduler/lower/split.h"

namespace fusejit::scheduler {
namespace {

class Chooser {
 public:
  Chooser(const ir::Contraction& c, const Target& target, const FusedWork& fused)
      : c_(c), target_(target), fused_(fused), roles_(roles_of(c)) {
    const int most = target.lanes32() / (fused.compute == DType::f64 ? 2 : 1);
    const std::int64_t outputs = extent(roles_.outputs), groups = product(roles_.groups);
    along_groups_ = runs_along_groups(roles_, c);
    s_.lanes = most;
    if (roles_.adjoin && groups > 1) {  // lanes along the outputs of a group where they divide them
      const std::int64_t even = power_of_two_in(outputs, most);
      if (even >= tuning::kLeastLanes) s_.lanes = static_cast<int>(even);
    }
    vector_ = along_groups_ ? roles_.groups.front() : roles_.outputs;
    s_.vector = name(vector_);
  }

  Schedule run() {
    c_.b.weights ? tiles_of_pixels() : along_groups_ ? sums_along_groups() : tiles_of_weights();
    return s_;
  }

 private:
  const std::string& name(int d) const { return c_.dims[static_cast<std::size_t>(d)].name; }
  std::int64_t extent(int d) const { return d < 0 ? 1 : c_.dims[static_cast<std::size_t>(d)].extent; }
  std::int64_t product(const std::vector<int>& dims) const {
    std::int64_t all = 1;
    for (const int d : dims) all *= extent(d);
    return all;
  }
  // The dim of the first operand's index that this one makes together with another, which is `tap`; its coefficient.
  struct Window {
    int axis = -1, other = -1;
    std::int64_t stride = 1, in = 1;
    bool leaves = false;
  };
  Window window_of(int d) const {
    Window window{-1, -1, 1, extent(d), false};
    for (std::size_t i = 0; d >= 0 && i < c_.a.index.size(); ++i) {
      const ir::DimSum& sum = c_.a.index[i];
      if (sum.coefficient_of(d) == 0) continue;
      window = {static_cast<int>(i), -1, sum.coefficient_of(d), c_.a.extents[i],
                c_.a.may_leave(static_cast<int>(i), c_.dims)};
      for (const ir::DimSum::Term& term : sum.terms)
        if (term.dim != d) window.other = term.dim;
    }
    return window;
  }
  std::vector<std::string> names(const std::vector<int>& dims) const {
    std::vector<std::string> list;
    for (const int d : dims) list.push_back(name(d));
    return list;
  }
  static void add(std::vector<ScheduledLoop>& loops, std::string dim, std::int64_t step = 0) {
    loops.push_back({{std::move(dim)}, step});
  }
  void add_if_any(std::vector<ScheduledLoop>& loops, int d, std::int64_t step = 0) const {
    if (extent(d) > 1) add(loops, name(d), step);
  }
  void add_together(std::vector<ScheduledLoop>& loops, const std::vector<int>& dims) const {
    ScheduledLoop loop;
    for (const int d : dims)
      if (extent(d) > 1) loop.dims.push_back(name(d));
    if (!loop.dims.empty()) loops.push_back(std::move(loop));
  }

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
    const std::int64_t channels = product(channel_dims), across = extent(vector_), width = extent(q);
    const bool has_groups = product(roles_.groups) > 1;

    // Along groups a lane without a group costs a masked access at every tap.
    const bool whole = across % s_.lanes == 0 && across % (2 * s_.lanes) != 0;
    s_.vectors = across > s_.lanes && !(has_groups && whole) ? 2 : 1;
    if (!has_groups && whole && across % (3 * s_.lanes) == 0 && has_many_registers()) s_.vectors = 3;
    const std::int64_t block = s_.block(), blocks = ir::ceil_divide<std::int64_t>(across, block),
                       most = most_pixels(columns, p, channel_dims);
    const std::int64_t tiles = ir::ceil_divide<std::int64_t>(width, most),
                       pixels = ir::ceil_divide<std::int64_t>(width, tiles);  // 26 are 2 x 13
    if (pixels > 1) s_.tile = {{{name(q)}, pixels}};

    // One row, such as a matrix, is cut along its columns, unless some taps fall outside.
    const std::int64_t image_count = product(images);
    const bool matrix = extent(p) == 1 && image_count == 1 && !columns.leaves;
    const Split row_blocks = matrix ? Split{} : split(extent(p), rows_wanted(p, q, image_count, channels, blocks));
    const Split column_blocks =
        matrix ? split(tiles, ir::ceil_divide<std::int64_t>(target_.tasks, blocks)) : Split{tiles, tiles, 1};
    if (matrix) {
      if (column_blocks.chunks > 1) add(s_.tasks, name(q), column_blocks.chunk * pixels);
    } else {
      add_together(s_.tasks, images);
      if (row_blocks.chunks > 1) add(s_.tasks, name(p), row_blocks.chunk == 1 ? 0 : row_blocks.chunk);
    }
    outputs_loops(image_count * row_blocks.chunks * column_blocks.chunks);

    if (row_blocks.chunks == 1 || row_blocks.chunk > 1) add_if_any(s_.inner, p);
    add_if_any(s_.inner, q);
    sums_of_pixels(columns, rows, channel_dims, channels);
    // Copies of the tile for the edges of an image would spill, where many taps share inputs or weights come early.
    const bool spills_at_edges =
        columns.leaves && !along_groups_ && (channels < tuning::kFewChannels || !s_.dot.empty());
    if ((fused_.prologue || spills_at_edges) && !matrix) panel_of_pixels(rows, columns, row_blocks.chunk);
    // The next row of a block of outputs, or the next task's of all (Nest::fetches_runs).
    if (reads_with_results(p)) {
      s_.fetch = {{name(p)}, row_blocks.chunk};
    } else if (does_little(p, block)) {
      s_.fetch = {{name(p)}, 1};
    } else if (!along_groups_ && !has_groups && extent(roles_.outputs) <= block && s_.vectors > 1 && pixels < width) {
      s_.fetch = {{name(q)}, pixels};
    }
    stream_weights(image_count * extent(p) * tiles);
    s_.stream = fused_.result_bytes >= target_.l3_bytes / 2;
    if (c_.terms() > 0) s_.pack_b = s_.block();
  }

  bool has_many_registers() const { return target_.vector_registers() == 32; }
  std::int64_t vectors_in_registers() const { return (target_.vector_registers() - 2 - s_.vectors) / s_.vectors; }
  // Of a tile.
  std::int64_t most_pixels(const Window& columns, int p, const std::vector<int>& channel_dims) const {
    const std::int64_t channels = product(channel_dims);
    const bool shares = shares_inputs(columns, channels);
    std::int64_t most = tuning::kMostPixels;
    if (shares && !along_groups_) {
      most = tuning::kSharingPixels;
    } else if (shares && has_many_registers() && columns.stride == 1 && extent(columns.other) > 2 &&
               columns.in <= tuning::kNarrowRow) {
      most = tuning::kNarrowRowPixels;
    } else if (along_groups_ || channels < tuning::kFewChannels || reads_with_results(p) ||
               (has_many_registers() && small_tiles_win(channel_dims))) {
      // Along groups an epilogue comes after few products, and its own registers count for more.
      most = tuning::kFewPixels;
    }
    return std::min(vectors_in_registers(), most);
  }

  // What the rows of a task read, unless tasks that share out the outputs would each compute it, or pairs of a group's
  // channels are no index of their own.
  void panel_of_pixels(const Window& rows, const Window& columns, std::int64_t rows_of_task) {
    const auto over_outputs = [&](const ScheduledLoop& loop) { return loop.dims[0] == s_.vector; };
    const bool shared_out = std::any_of(s_.tasks.begin(), s_.tasks.end(), over_outputs),
               pairs_in_groups = !s_.dot.empty() && product(roles_.groups) > 1;
    if ((shared_out && !along_groups_) || pairs_in_groups) return;
    if (panel_bytes(rows, columns, rows_of_task) > target_.l2_bytes / 2) return;
    s_.panel_a = along_groups_ && !shared_out ? s_.outer.back().dims[0] : Schedule::kTask;
  }
  std::int64_t panel_bytes(const Window& rows, const Window& columns, std::int64_t rows_of_task) const {
    const std::int64_t in_rows = (rows_of_task - 1) * rows.stride + (rows.other < 0 ? 1 : extent(rows.other)),
                       channels = along_groups_ ? s_.block()
                                                : product(roles_.groups) *
                                                      product(by_window(roles_.sums, roles_.pixels, c_).others);
    return in_rows * columns.in * channels * bytes(fused_.compute);
  }

  // Groups and blocks of outputs: parallel where the rest gives too few tasks.
  void outputs_loops(std::int64_t parts) {
    std::vector<int> apart = roles_.groups;
    if (along_groups_) apart = {roles_.outputs};
    const bool copies =
        roles_.adjoin && !along_groups_ && product(apart) > 1 && extent(roles_.outputs) % s_.block() != 0;
    const bool parallel = (along_groups_ || parts * 2 < wanted_tasks()) && !copies;
    const bool by_groups = parallel && product(apart) > 1;
    add_together(by_groups ? s_.tasks : s_.outer, apart);
    add_if_any(parallel && !by_groups ? s_.tasks : s_.outer, vector_);
  }

  // Weights that L2 does not hold, for few tiles of pixels: tasks are sorted by blocks of outputs, so that a block's
  // weights come from far once, while the tiles of the block before it are computed.
  void stream_weights(std::int64_t tiles) {
    const auto over_outputs = [&](const ScheduledLoop& loop) { return loop.dims[0] == s_.vector; };
    const auto outputs = std::find_if(s_.tasks.begin(), s_.tasks.end(), over_outputs);
    const std::int64_t weights = c_.terms() * extent(vector_) * bytes(fused_.compute) / (s_.dot.empty() ? 1 : 2);
    if (along_groups_ || outputs == s_.tasks.end() || product(roles_.groups) > 1) return;
    if (weights < target_.l2_bytes / tuning::kStreamedWeightsOfL2 || tiles > tuning::kMostTilesOfStream) return;
    std::rotate(s_.tasks.begin(), outputs, outputs + 1);
    s_.fetch = {{s_.vector}, s_.block()};
  }

  // A panel has what the next task's has too, so that fewer tasks compute less.
  std::int64_t wanted_tasks() const {
    return fused_.prologue ? std::min(target_.tasks, tuning::kTasksOfPanels) : target_.tasks;
  }

  // Row blocks so that there are enough tasks and a block's input stays in a quarter of L2. Groups share no input, so
  // there each block of them may be a task.
  std::int64_t rows_wanted(int p, int q, std::int64_t images, std::int64_t channels, std::int64_t blocks) const {
    if (along_groups_) {
      const std::int64_t outputs = extent(roles_.outputs), without = images * (outputs > 1 ? outputs : blocks),
                         for_tasks = ir::ceil_divide<std::int64_t>(target_.tasks, without);
      const std::int64_t of_panel = extent(p) * window_of(p).stride * window_of(q).in * s_.block() * 4,
                         for_panel =
                             fused_.prologue ? of_panel / std::max<std::int64_t>(1, target_.l2_bytes / 4) + 1 : 1;
      return std::min(extent(p), std::max(for_tasks, for_panel));
    }
    const std::int64_t row_bytes = window_of(q).in * product(roles_.groups) * channels * 4 * window_of(p).stride;
    const std::int64_t for_cache = extent(p) * row_bytes / std::max<std::int64_t>(1, target_.l2_bytes / 4) + 1;
    // What the epilogue touches is in pieces of a block of outputs: all blocks of the same lines while L2 has them, and
    // those that are fetched for the next task.
    const std::int64_t touched = extent(q) * extent(vector_) * bytes(c_.a.dtype) * (1 + fused_.elements_read);
    const std::int64_t of_l2 = reads_with_results(p) ? target_.l2_bytes / 4 : target_.l2_bytes;
    const std::int64_t for_epilogue =
        blocks > 1 && fused_.elements_read > 0 ? ir::ceil_divide(extent(p) * touched, of_l2) : 1;
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
    }
    for (const int d : channel_dims) {
      const bool dot = d == c_last() && multiplies_pairs(d);
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

  int c_last() const { return static_cast<int>(c_.dims.size()) - 1; }
  // Where the target's table says that dot2 beats FMA on widened values.
  bool multiplies_pairs(int channel) const {
    return target_.dot2_is_faster && c_.a.dtype == DType::bf16 && c_.b.dtype == DType::bf16 && extent(channel) > 0 &&
           extent(channel) % 2 == 0;
  }

  // Where tuning::kFewPixels are as good as any tile, or better.
  bool small_tiles_win(const std::vector<int>& channel_dims) const {
    const bool pairs = !channel_dims.empty() && channel_dims.back() == c_last() && multiplies_pairs(c_last());
    return target_.fma_per_cycle < 2 || (target_.dot2_is_faster && !pairs);
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
    return !along_groups_ && fused_.elements_read > 0 && !fused_.prologue && extent(p) > 1 &&
           product(roles_.groups) == 1 && !adjoin && extent(vector_) % s_.block() == 0;
  }

  // A sum over pixels: a tile of weights stays in registers while a block of pixels passes; partial sums of image
  // blocks are added in a fixed order.
  void tiles_of_weights() {
    const auto [n, planes, p, q] = summed_images();
    const auto [taps, channel] = taps_and_channel();
    const std::int64_t outputs = extent(roles_.outputs), groups = product(roles_.groups), channels = extent(channel);
    s_.vectors =
        outputs > s_.lanes && (groups == 1 || outputs % s_.lanes != 0 || outputs % (2 * s_.lanes) == 0) ? 2 : 1;
    const bool few = channels < tuning::kFewChannels;
    if (few && groups == 1 && has_many_registers() && target_.fma_per_cycle == 2 && outputs % (4 * s_.lanes) == 0)
      s_.vectors = 4;
    const std::int64_t blocks = ir::ceil_divide<std::int64_t>(outputs, s_.block()),
                       most = std::min(vectors_in_registers(), tuning::kMostPixels);
    const bool dot = !few && groups == 1 && multiplies_pairs(n);
    const std::int64_t at_once = dot ? 2 : 1;
    if (dot) s_.dot = name(n), s_.unroll = {{{name(n)}, 2}};

    const bool in_panel = dot || (fused_.prologue && !few);
    // Tasks that share out outputs and channels where those are many, else outputs and images.
    const std::optional<Shares> shares =
        in_panel && groups == 1 ? shares_of_weights(blocks, channels, product(taps), area_of_pixel(p, q)) : std::nullopt;
    const std::int64_t together = shares     ? shares->blocks
                                  : in_panel ? blocks_of_panel(blocks, channels, product(taps), dot)
                                             : 1;
    const std::int64_t tasks = shares ? target_.tasks : blocks / together * groups;
    // Every part of the sum is a partial result of all weights in memory: few parts, unless all of them stay in L2.
    const std::int64_t few_parts = ir::ceil_divide<std::int64_t>(tuning::kTasksOfSums, tasks),
                       wanted_parts = ir::ceil_divide<std::int64_t>(target_.tasks, tasks);
    Split parts =
        split(extent(n) / at_once,
              shares ? 1
                     : std::min(wanted_parts,
                                std::max(few_parts, target_.l2_bytes / std::max<std::int64_t>(1, weight_bytes()))));
    parts = of_one_size(parts);
    parts.chunk *= at_once;
    if (parts.chunks > 1) add(s_.tasks, name(n), parts.chunk == at_once ? 0 : parts.chunk);
    add_together(s_.tasks, roles_.groups);
    if (together == 1 || together < blocks)
      add_if_any(s_.tasks, roles_.outputs, together == 1 ? 0 : together * s_.block());
    const std::int64_t channels_of_task = shares ? shares->channels : channels;
    if (channels_of_task < channels) add(s_.tasks, name(channel), channels_of_task);

    // What passes by before the next tile has its turn: pixels of which the second operand's block, copied side by
    // side, stays in L1 beside the first operand; rows, or several images where one is small. Enough that reading and
    // writing the tile is little beside it.
    const std::int64_t row_bytes = extent(q) * s_.block() * (dot ? 2 : bytes(fused_.compute)),
                       wanted = std::max<std::int64_t>(
                           1, static_cast<std::int64_t>(static_cast<double>(target_.l1_bytes) * tuning::kPanelOfL1) /
                                  row_bytes);
    const Split row_blocks = split(extent(p), ir::ceil_divide(extent(p), evenly(extent(p), wanted)));
    std::int64_t images = at_once;  // that pass by
    if (row_blocks.chunks == 1 && product(planes) == 1) {
      images = std::min(parts.chunk, at_once * wanted / std::max<std::int64_t>(extent(p), 1));
      while (images > at_once && (parts.chunk % images != 0 || images % at_once != 0)) --images;
      images = std::max(images, at_once);
    }
    if (parts.chunk > images) add(s_.outer, name(n), images == at_once ? 0 : images);
    for (const int d : planes) add_if_any(s_.outer, d);
    if (row_blocks.chunks > 1) add(s_.outer, name(p), row_blocks.chunk);
    const auto innermost = [&]() -> std::string {
      return s_.outer.empty() ? Schedule::kTask : s_.outer.back().dims[0];
    };
    if (in_panel) s_.panel_a = innermost();
    if (together > 1) add(s_.outer, name(roles_.outputs));
    if (!few) s_.panel_b = innermost();
    if (few) {  // the taps of a row share a tile
      for (const int d : taps)
        if (d != taps.back()) add_if_any(s_.outer, d);
      const std::int64_t pairs = extent(taps.back()) * channels;
      s_.tile = {{{name(taps.back()), name(channel)}, ir::ceil_divide(pairs, ir::ceil_divide(pairs, most))}};
      s_.outer.push_back({s_.tile[0].dims, 0});
    } else {
      for (const int d : taps) add_if_any(s_.outer, d);
      const std::int64_t width = width_of(channels_of_task, most);
      if (width > 1) s_.tile = {{{name(channel)}, width}};
      add_if_any(s_.outer, channel);
      if (shares_sets(q, channel)) {
        // what is fetched for the next turn would take the place of what is read in this one
      } else if (row_blocks.chunks > 1) {
        s_.fetch = {{name(p)}, row_blocks.chunk};
      } else if (product(taps) == 1 || images == at_once) {  // else tiles pass over small images often enough
        s_.fetch = {{name(n)}, images};
      }
    }
    if (images > at_once) add(s_.inner, name(n));
    add_inner_window(p);
    add_inner_window(q);
    s_.combine = {channels < s_.lanes ? name(roles_.outputs) : name(channel)};
    if (product(fused_.lie_together) >= s_.lanes) s_.combine = names(fused_.lie_together);
  }
  // Fewer parts, if they can be of one size and are no more than twice as large.
  static Split of_one_size(const Split& parts) {
    Split even = parts;
    while (even.count % even.chunk != 0) even = split(even.count, even.chunks - 1);
    return even.chunk <= 2 * parts.chunk ? even : parts;
  }
  // As many as divide the extent, if those are half of the most at least.
  static std::int64_t evenly(std::int64_t extent, std::int64_t most) {
    if (most >= extent) return extent;
    std::int64_t even = most;
    while (even > 1 && extent % even != 0) --even;
    return 2 * even > most ? even : most;
  }
  // Neighbouring pixels of the first operand, channels innermost, lie in one set of L1, which has as many ways.
  bool shares_sets(int q, int channel) const {
    const std::int64_t pixel = window_of(q).stride * extent(channel) * bytes(c_.a.dtype);
    return pixel % tuning::kBytesOfSets == 0;
  }
  // Elements of the first operand that are copied for each pixel: single taps skip those between.
  std::int64_t area_of_pixel(int p, int q) const {
    const std::int64_t stride = window_of(p).stride * window_of(q).stride;
    return product(taps_and_channel().taps) == 1 ? 1 : stride;
  }
  // What a task has of weights that leave L2: blocks of outputs, channels.
  struct Shares {
    std::int64_t blocks = 1, channels = 1;
  };
  // Each share of the outputs copies all of its channels' first operand, each share of the channels the second. As few
  // copies as enough tasks allow, whose sums L2 keeps beside panels.
  std::optional<Shares> shares_of_weights(std::int64_t blocks, std::int64_t channels, std::int64_t taps,
                                          std::int64_t area) const {
    if (weight_bytes() <= target_.l2_bytes / 2 || extent(roles_.outputs) % s_.block() != 0) return std::nullopt;
    const std::int64_t most_bytes = target_.l2_bytes / tuning::kSumsOfTaskInL2,
                       tasks =
                           std::max<std::int64_t>(tuning::kTasksOfSums, ir::ceil_divide(weight_bytes(), most_bytes));
    std::optional<Shares> best;
    std::int64_t least = 0;
    for (std::int64_t parts = 1; channels % (parts * s_.lanes) == 0; parts *= 2) {
      const Shares one{power_of_two_in(blocks, blocks * parts / tasks), channels / parts};
      if (one.channels < tuning::kLeastChannelsOfTask && parts > 1) break;
      if (blocks * parts < tasks || (one.blocks == 1 && taps > 1) ||
          one.blocks * s_.block() * one.channels * taps * bytes(fused_.compute) > most_bytes)
        continue;
      const std::int64_t copies = channels * (blocks / one.blocks) * area + extent(roles_.outputs) * parts;
      if (!best || copies < least) best = one, least = copies;
    }
    return best;
  }
  // All weights as sums: what a part of the images adds up.
  std::int64_t weight_bytes() const { return c_.outputs() * bytes(fused_.compute); }
  // Blocks of outputs that a panel of the first operand is for: as many as make its copy little beside the products. A
  // prologue's copy is read ahead, so it is worth less than sums that stay in L2; where many taps read it, it is
  // little.
  std::int64_t blocks_of_panel(std::int64_t blocks, std::int64_t channels, std::int64_t taps, bool dot) const {
    const std::int64_t sums = s_.block() * channels * taps * bytes(fused_.compute),
                       fit = target_.l2_bytes / tuning::kSumsOfPanelInL2 / sums,
                       uses = ir::ceil_divide<std::int64_t>(tuning::kLeastUsesOfPanel, taps * s_.block()),
                       of_prologue = taps == 1 ? std::clamp<std::int64_t>(fit, 1, uses) : 1;
    const bool leaves_l2 = weight_bytes() > target_.l2_bytes / 2;
    std::int64_t shared = std::min(dot ? uses : of_prologue,
                                   leaves_l2 ? std::max<std::int64_t>(1, blocks / tuning::kTasksOfSums) : blocks);
    while (shared > 1 && shared < blocks && extent(roles_.outputs) % (shared * s_.block()) != 0) --shared;
    return shared;
  }
  // What a weight gradient sums up: images, the rows and columns of each, and what lies between those.
  struct SummedImages {
    int images = -1;
    std::vector<int> planes;
    int rows = -1, columns = -1;
  };
  SummedImages summed_images() const {
    const auto [windows, others] = by_window(roles_.sums, roles_.pixels, c_);
    FJ_ASSERT(others.size() == 1 && !windows.empty(), "no windows over images in {}", str(c_));
    if (windows.size() == 1) return {others[0], {}, -1, windows[0]};
    return {others[0], {windows.begin(), windows.end() - 2}, *(windows.end() - 2), windows.back()};
  }
  struct TapsAndChannel {
    std::vector<int> taps;
    int channel = -1;
  };
  TapsAndChannel taps_and_channel() const {
    const auto [windows, others] = by_window(roles_.pixels, roles_.sums, c_);
    FJ_ASSERT(others.size() == 1 && !windows.empty(), "no taps of channels in {}", str(c_));
    return {windows, others[0]};
  }
  // A loop over pixels, also over one: it may have none that a tap reads inside.
  void add_inner_window(int d) {
    if (extent(d) > 1 || window_of(d).leaves) add(s_.inner, name(d));
  }

  // Channels of a tile: a divisor of them near the most.
  static std::int64_t width_of(std::int64_t channels, std::int64_t most) {
    std::int64_t width = ir::ceil_divide<std::int64_t>(channels, ir::ceil_divide<std::int64_t>(channels, most));
    while (width > 4 && channels % width != 0 && channels % (width - 1) == 0) --width;
    return width;
  }

  // The same where lanes run along groups (depthwise): a tile is every tap of as many groups, or what fits into the
  // registers, and stays there while the pixels of a part pass, so both operands are read once.
  void sums_along_groups() {
    const auto [n, planes, p, q] = summed_images();
    const auto [tap_dims, channel] = taps_and_channel();
    const std::int64_t registers = target_.vector_registers() - 1, taps = product(tap_dims), groups = extent(vector_);
    s_.vectors = groups % (2 * s_.lanes) == 0 && 2 * (taps + 1) <= registers ? 2 : 1;
    // More neighbours side by side, for a part of the taps, read longer pieces of each pixel.
    for (const int vectors : {3, 4})
      if (has_many_registers() && groups % (vectors * s_.lanes) == 0) s_.vectors = vectors;
    const std::int64_t blocks = ir::ceil_divide<std::int64_t>(groups, s_.block());
    const std::int64_t most = std::max<std::int64_t>(1, (registers - s_.vectors) / s_.vectors);
    const std::int64_t wanted = ir::ceil_divide<std::int64_t>(target_.tasks, blocks);
    const Split images = split(extent(n), wanted),
                row_blocks = split(extent(p), ir::ceil_divide<std::int64_t>(wanted, images.chunks));
    if (images.chunks > 1) add(s_.tasks, name(n), images.chunk == 1 ? 0 : images.chunk);
    if (row_blocks.chunks > 1) add(s_.tasks, name(p), row_blocks.chunk);
    add_if_any(s_.tasks, vector_);
    const bool panel =
        fused_.prologue && product(planes) == 1 && panel_of_groups(n, p, q, images.chunk, row_blocks.chunk);
    if (panel) s_.fetch = {{name(p)}, 1};
    add_if_any(s_.outer, roles_.outputs);
    add_if_any(s_.outer, channel);
    if (taps > 1) {
      s_.tile = {{names(tap_dims), ir::ceil_divide(taps, ir::ceil_divide(taps, most))}};
      s_.outer.push_back({s_.tile[0].dims, 0});
    }
    if (images.chunk > 1 && !panel) add(s_.inner, name(n));
    for (const int d : planes) add_inner_window(d);
    add_inner_window(p);
    add_inner_window(q);
    s_.combine = {name(vector_)};
  }

  // A panel of one image after the other, or of rows of it.
  bool panel_of_groups(int n, int p, int q, std::int64_t images, std::int64_t rows_of_task) {
    const Window rows = window_of(p), columns = window_of(q);
    const std::int64_t parts =
        ir::ceil_divide(panel_bytes(rows, columns, rows_of_task), std::max<std::int64_t>(1, target_.l2_bytes / 4));
    std::int64_t at_once = split(rows_of_task, parts).chunk;
    while (rows_of_task < extent(p) && rows_of_task % at_once != 0) --at_once;  // they fill those of a task
    if (panel_bytes(rows, columns, at_once) > target_.l2_bytes / 2) return false;
    if (images > 1) add(s_.outer, name(n));
    if (at_once < rows_of_task) add(s_.outer, name(p), at_once);
    s_.panel_a = s_.outer.empty() ? Schedule::kTask : s_.outer.back().dims[0];
    return true;
  }

  const ir::Contraction& c_;
  const Target& target_;
  const FusedWork& fused_;
  const Roles roles_;
  bool along_groups_ = false;
  int vector_ = -1;
  Schedule s_;
};

}  // namespace

std::vector<Schedule> x86_candidates(const ir::Contraction& contraction, const Target& target, const FusedWork& fused) {
  std::vector<Schedule> list{Chooser(contraction, target, fused).run()};
  if (const std::optional<WinogradCandidate> winograd = x86_winograd(contraction, target, fused))
    list.insert(winograd->pays ? list.begin() : list.end(), winograd->schedule);
  return list;
}

}  // namespace fusejit::scheduler
