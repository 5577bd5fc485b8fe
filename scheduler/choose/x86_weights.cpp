// Weight gradients: a tile of weights stays in registers while pixels pass.
#include <algorithm>

#include "ir/base/check.h"
#include "scheduler/choose/x86_chooser.h"
#include "scheduler/lower/split.h"

namespace fusejit::scheduler {
namespace {

class TilesOfWeights : X86Chooser {
 public:
  using X86Chooser::X86Chooser;

  Schedule run() {
    along_groups_ ? sums_along_groups() : tiles_of_weights();
    return s_;
  }

 private:
  static constexpr int kVectorsOfTiles = 2;

  // A sum over pixels: a tile of weights stays in registers while a block of pixels passes; partial sums of image
  // blocks are added in a fixed order.
  void tiles_of_weights() {
    const auto [n, planes, p, q] = summed_images();
    const auto [taps, channel] = taps_and_channel();
    const std::int64_t outputs = extent(roles_.outputs), groups = product(roles_.groups), channels = extent(channel);
    s_.vectors =
        outputs > s_.lanes && (groups == 1 || outputs % s_.lanes != 0 || outputs % (2 * s_.lanes) == 0) ? 2 : 1;
    const bool few = channels < tuning::kFewChannels;
    const bool dot = groups == 1 && multiplies_pairs(n) && product(taps) * channels >= tuning::kLeastWeightsOfPairs;
    if (groups == 1 && has_many_registers() && target_.fma_per_cycle == 2 && outputs % (4 * s_.lanes) == 0 &&
        (few || (!dot && suits_wide_tile(channels, product(taps), area_of_pixel(p, q)))))
      s_.vectors = 4;
    const bool plain = !few && !dot && groups == 1 && product(planes) == 1;  // images of pixels, multiplied by FMA
    const std::optional<Shares> in_l2 = !plain || product(taps) > 1 ? std::nullopt
                                        : fused_.beside_gradient    ? all_weights(extent(n), channels)
                                        : keeps_sums_in_l2(channels)
                                            ? shares_in_l2(extent(n), extent(p) * extent(q), channels)
                                            : std::nullopt;
    const bool tiles = plain && !in_l2 && window_of(p).stride * window_of(q).stride == 1 &&
                       suits_tiles(extent(n), channels, product(taps));
    if (tiles) s_.vectors = kVectorsOfTiles;
    const std::int64_t blocks = ir::ceil_divide<std::int64_t>(outputs, s_.block()),
                       most = std::min(vectors_in_registers(), tuning::kMostPixels);
    const std::int64_t at_once = dot ? 2 : 1;
    if (dot) s_.dot = name(n), s_.unroll = {{{name(n)}, 2}};

    const bool in_panel = dot || tiles || fused_.computes_a || in_l2;
    // Tasks that share out outputs and channels where those are many, else outputs and images.
    std::optional<Shares> shares = in_l2;
    if (!few && groups == 1 && !tiles && !shares &&
        (in_panel || weight_bytes() > tuning::kSharedWeightsOfL2 * target_.l2_bytes))
      shares = shares_of_weights(blocks, channels, product(taps), in_panel ? area_of_pixel(p, q) : 0);
    const std::int64_t together = shares     ? shares->blocks
                                  : tiles    ? blocks_of_tiles(channels, product(taps))
                                  : in_panel ? blocks_of_panel(blocks, channels, product(taps), dot)
                                             : 1;
    const std::int64_t tasks = shares ? target_.tasks : blocks / together * groups;
    // Every part of the sum is a partial result of all weights in memory: few parts, unless all of them stay in L2.
    const std::int64_t few_parts = ir::ceil_divide<std::int64_t>(tasks_of_sums(), tasks),
                       wanted_parts = ir::ceil_divide<std::int64_t>(target_.tasks, tasks);
    Split parts =
        split(extent(n) / at_once,
              shares ? shares->parts
                     : std::min(wanted_parts,
                                std::max(few_parts, target_.l2_bytes / std::max<std::int64_t>(1, weight_bytes()))));
    parts = of_one_size(parts);
    parts.chunk *= at_once;
    if (parts.chunks > 1) add(s_.tasks, name(n), parts.chunk == at_once ? 0 : parts.chunk);
    add_together(s_.tasks, roles_.groups);
    if (together == 1 || together < blocks)
      add_if_any(s_.tasks, roles_.outputs, together == 1 ? 0 : together * s_.block());
    // Of one image, or few, parts of the rows, or of the only row.
    std::int64_t parts_of_rows = 1;
    if (dot && few && product(planes) == 1) {
      parts_of_rows = few_parts / parts.chunks;
    } else if (parts.chunk == at_once && product(planes) == 1 && !shares && s_.tasks.size() < kMostTaskLoops) {
      parts_of_rows = std::min(few_parts / parts.chunks, extent(p) * extent(q) / tuning::kLeastPixelsOfPart);
    }
    parts_of_rows = std::max<std::int64_t>(1, parts_of_rows);
    // What passes by before the next tile has its turn: pixels of which the second operand's block, copied side by
    // side, stays in L1 beside the first operand; rows, or several images where one is small. Enough that reading and
    // writing the tile is little beside it.
    const std::int64_t in_l1 = static_cast<std::int64_t>(static_cast<double>(target_.l1_bytes) * tuning::kPanelOfL1),
                       two_vectors = std::min<std::int64_t>(s_.block(), 2 * s_.lanes);
    const auto pixels_of = [&](std::int64_t outputs) {
      return std::max<std::int64_t>(1, in_l1 / (outputs * (dot ? 2 : bytes(fused_.compute))));
    };
    // A task has whole blocks of them.
    const auto blocks_of = [](std::int64_t chunk, std::int64_t block, std::int64_t all) {
      return std::min(all, ir::ceil_divide(chunk, block) * block);
    };
    const std::int64_t part_of_columns = split(extent(q), extent(p) > 1 ? 1 : parts_of_rows).chunk,
                       columns = fused_.beside_gradient  // whole rows meet those of the other
                                     ? extent(q)
                                     : columns_at_once(part_of_columns,
                                                       tiles ? tuning::kMostPixelsOfTile : pixels_of(two_vectors)),
                       columns_of_task = blocks_of(part_of_columns, columns, extent(q));
    const std::int64_t least =
                           few && in_panel && !taps.empty() ? extent(taps[0]) : 1,  // else most rows are copied again
        wanted = tiles ? rows_of_tiles(p, q, columns, channels, product(taps))
                       : std::max<std::int64_t>(least, pixels_of(few ? s_.block() : two_vectors) / columns);
    const std::int64_t part_of_rows = split(extent(p), parts_of_rows).chunk,
                       rows_at_once = evenly(part_of_rows, wanted),
                       rows_of_task = blocks_of(part_of_rows, rows_at_once, extent(p));
    const bool shares_rows = rows_of_task < extent(p);
    if (shares_rows) add(s_.tasks, name(p), rows_of_task);
    if (columns_of_task < extent(q)) add(s_.tasks, name(q), columns_of_task);
    const std::int64_t channels_of_task = shares ? shares->channels : channels;
    if (channels_of_task < channels) add(s_.tasks, name(channel), channels_of_task);
    const Split row_blocks = split(rows_of_task, ir::ceil_divide(rows_of_task, rows_at_once));
    std::int64_t images = at_once;  // that pass by
    const bool cuts_columns = columns < columns_of_task;
    if (row_blocks.chunks == 1 && !shares_rows && columns == extent(q) && product(planes) == 1) {
      images = std::min(parts.chunk, at_once * wanted / std::max<std::int64_t>(extent(p), 1));
      while (images > at_once && (parts.chunk % images != 0 || images % at_once != 0)) --images;
      images = std::max(images, at_once);
    }
    if (parts.chunk > images) add(s_.outer, name(n), images == at_once ? 0 : images);
    for (const int d : planes) add_if_any(s_.outer, d);
    if (row_blocks.chunks > 1) add(s_.outer, name(p), row_blocks.chunk);
    if (cuts_columns) add(s_.outer, name(q), columns);
    // What passes by next.
    const Extent next = cuts_columns ? Extent{{name(q)}, columns} : Extent{{name(p)}, row_blocks.chunk};
    const bool has_next = cuts_columns || row_blocks.chunks > 1;
    const auto innermost = [&]() -> std::string {
      return s_.outer.empty() ? Schedule::kTask : s_.outer.back().dims[0];
    };
    if (in_panel) s_.panel_a = innermost();
    s_.tiles_a = tiles || in_l2;
    if (together > 1) add(s_.outer, name(roles_.outputs));
    if ((!few && !tiles) || dot || fused_.computes_b) s_.panel_b = innermost();
    if (few) {  // the taps of a row share a tile
      for (const int d : taps)
        if (d != taps.back()) add_if_any(s_.outer, d);
      const std::int64_t pairs = extent(taps.back()) * channels;
      s_.tile = {{{name(taps.back()), name(channel)}, ir::ceil_divide(pairs, ir::ceil_divide(pairs, most))}};
      s_.outer.push_back({s_.tile[0].dims, 0});
      if ((in_panel || fused_.computes_b) && has_next) s_.fetch = next;
    } else {
      const std::int64_t width = width_of(channels_of_task, most);
      if (width > 1) s_.tile = {{{name(channel)}, width}};
      if (tiles) add_if_any(s_.outer, channel);  // whose pixels stay in L1 while taps pass
      for (const int d : taps) add_if_any(s_.outer, d);
      if (!tiles) add_if_any(s_.outer, channel);
      if (has_next) {
        s_.fetch = next;
      } else if (product(taps) == 1 || images == at_once) {  // else tiles pass over small images often enough
        s_.fetch = {{name(n)}, images};
      }
      // Else what is fetched of the first operand for the next turn would take the place of what is read in this one.
      s_.fetch_b = !s_.tiles_a && !s_.fetch.dims.empty() && shares_sets(q, channel);
    }
    if (images > at_once) add(s_.inner, name(n));
    add_inner_window(p);
    add_inner_window(q);
    s_.combine = {lies_last(channel) && channels >= s_.lanes ? name(channel) : name(roles_.outputs)};
    if (product(fused_.lie_together) >= s_.lanes) s_.combine = names(fused_.lie_together);
  }
  // Behind the outputs, in the result.
  bool lies_last(int channel) const {
    const auto place = [&](int dim) {
      std::size_t last = 0;
      for (std::size_t d = 0; d < c_.result.size(); ++d)
        if (c_.result[d].coefficient_of(dim) != 0) last = d;
      return last;
    };
    return place(roles_.outputs) < place(channel);
  }
  // Four vectors of outputs by six channels: not where few of them, a tile each, make sums of more parts.
  bool suits_wide_tile(std::int64_t channels, std::int64_t taps, std::int64_t area) const {
    if (channels * taps < tuning::kLeastWeightsOfWideTile) return false;
    return taps == 1 || (area > 1 && waits_for_l2(target_)) ||
           (area == 1 &&
            (weight_bytes() <= target_.l2_bytes / 4 || extent(roles_.outputs) >= tuning::kLeastOutputsOfWideTaps));
  }
  // The first operand is laid out tile by tile, so that a long run of pixels passes before the next tile: where weights
  // are few, each element is multiplied so often that its copy is little, and images alone are tasks enough.
  bool suits_tiles(std::int64_t images, std::int64_t channels, std::int64_t taps) const {
    const std::int64_t outputs = extent(roles_.outputs), block = kVectorsOfTiles * s_.lanes;
    if (!has_many_registers() || target_.fma_per_cycle != 2 || outputs % block != 0) return false;
    if (channels < tuning::kLeastChannelsOfTask || outputs * taps < tuning::kLeastUsesOfTile) return false;
    if (images * (outputs / block / blocks_of_tiles(channels, taps)) < tuning::kTasksOfSums) return false;
    if (taps > 1) return weight_bytes() <= part_of_l2(tuning::kSumsOfTilesInL2);
    if (fused_.computes_a || fused_.computes_b) return false;  // those wait for memory: two shorter panels are better
    return weight_bytes() <= target_.l2_bytes / 8 ? 2 * outputs >= channels
                                                  : weight_bytes() <= target_.l2_bytes / 4 && outputs >= 2 * channels;
  }
  // Blocks of outputs that one panel of tiles is for: their sums stay in L2 beside it.
  std::int64_t blocks_of_tiles(std::int64_t channels, std::int64_t taps) const {
    const std::int64_t block = kVectorsOfTiles * s_.lanes, sums = block * channels * taps * bytes(fused_.compute);
    return divisor_up_to(extent(roles_.outputs) / block,
                         std::max<std::int64_t>(1, part_of_l2(tuning::kSumsOfTilesInL2) / sums));
  }
  // Pixels of a row that pass by at once: all, unless those are many times what L1 has room for.
  static std::int64_t columns_at_once(std::int64_t columns, std::int64_t room) {
    return columns <= tuning::kRoomsOfRow * room ? std::max<std::int64_t>(1, columns) : evenly(columns, room);
  }
  // Rows of so many pixels that a panel of tiles is for.
  std::int64_t rows_of_tiles(int p, int q, std::int64_t columns, std::int64_t channels, std::int64_t taps) const {
    if (taps == 1) return ir::ceil_divide(tuning::kPixelsOfTile, columns);
    const std::int64_t row = std::max<std::int64_t>(1, read_by(q, columns) * channels * bytes(fused_.compute)),
                       around = window_of(p).span - 1, fit = part_of_l2(tuning::kPanelOfTilesInL2) / row - around;
    return std::clamp<std::int64_t>(fit, 1, std::max<std::int64_t>(1, tuning::kMostPixelsOfTile / columns));
  }
  std::int64_t part_of_l2(double part) const {
    return static_cast<std::int64_t>(static_cast<double>(target_.l2_bytes) * part);
  }
  // Fewer parts, if they can be of one size and are no more than twice as large.
  static Split of_one_size(const Split& parts) {
    Split even = parts;
    while (even.count % even.chunk != 0) even = split(even.count, even.chunks - 1);
    return even.chunk <= 2 * parts.chunk ? even : parts;
  }
  // As many as divide the extent, if those are half of the most at least.
  static std::int64_t evenly(std::int64_t extent, std::int64_t most) {
    const std::int64_t even = divisor_up_to(extent, most);
    return 2 * even > std::min(extent, most) ? even : most;
  }
  // Neighbouring pixels of the first operand, channels innermost, lie in one set of L1, which has as many ways.
  bool shares_sets(int q, int channel) const {
    return shares_a_set(window_of(q).stride * extent(channel) * bytes(c_.a.dtype));
  }
  // Elements of the first operand that are copied for each pixel: single taps skip those between.
  std::int64_t area_of_pixel(int p, int q) const {
    const std::int64_t stride = window_of(p).stride * window_of(q).stride;
    return product(taps_and_channel().taps) == 1 ? 1 : stride;
  }
  // What a task has of all weights: blocks of outputs, channels. Parts of the images, each of which is a sum.
  struct Shares {
    std::int64_t blocks = 1, channels = 1, parts = 1;
  };
  // Of a task that computes the other gradient too, block by block, and needs all channels for that.
  std::optional<Shares> all_weights(std::int64_t images, std::int64_t channels) const {
    if (extent(roles_.outputs) % s_.block() != 0) return std::nullopt;
    return Shares{extent(roles_.outputs) / s_.block(), channels, tasks_of_both_gradients(images, target_)};
  }
  std::int64_t tasks_of_sums() const { return waits_for_l2(target_) ? large_tasks(target_) : tuning::kTasksOfSums; }
  bool keeps_sums_in_l2(std::int64_t channels) const {
    return waits_for_l2(target_) && channels >= tuning::kLeastChannelsInL2 &&
           extent(roles_.outputs) >= (fused_.computes_b ? tuning::kLeastComputedInL2 : tuning::kLeastOutputsInL2) &&
           extent(roles_.outputs) % s_.block() == 0;
  }
  // The first operand is copied for each share of the outputs, the second for each share of the channels, all weights
  // are written and read again for each part of the images: as few elements as enough tasks allow.
  std::optional<Shares> shares_in_l2(std::int64_t images, std::int64_t pixels, std::int64_t channels) const {
    const auto [enough, moved_by_enough] = least_moved(2 * tasks_of_sums(), images, pixels, channels);
    const auto [fewer, moved_by_fewer] = least_moved(tasks_of_sums(), images, pixels, channels);
    if (!enough || (fewer && moved_by_enough > tuning::kWorthOfTasks * moved_by_fewer)) return fewer;
    return enough;
  }
  std::pair<std::optional<Shares>, double> least_moved(std::int64_t tasks, std::int64_t images, std::int64_t pixels,
                                                       std::int64_t channels) const {
    const std::int64_t outputs = extent(roles_.outputs), blocks = outputs / s_.block();
    std::pair<std::optional<Shares>, double> least;
    for (std::int64_t parts = 1; parts <= std::min(images, tasks); ++parts) {
      if (images % parts != 0) continue;
      for (std::int64_t of_outputs = 1; of_outputs <= std::min(blocks, tasks); of_outputs *= 2)
        for (std::int64_t of_channels = 1; of_channels <= tasks; of_channels *= 2) {
          if (blocks % of_outputs != 0 || channels % of_channels != 0) continue;
          const Shares one{blocks / of_outputs, channels / of_channels, parts};
          if (parts * of_outputs * of_channels < tasks || one.channels < tuning::kLeastChannelsOfTask ||
              one.blocks * s_.block() * one.channels * bytes(fused_.compute) > target_.l2_bytes / 2)
            continue;
          const auto all = [](std::int64_t elements, double cost) { return static_cast<double>(elements) * cost; };
          const double moved = all(images * pixels * channels * of_outputs, tuning::kCostOfTiles) +
                               all(images * pixels * outputs * of_channels,
                                   fused_.computes_b ? tuning::kCostOfComputedRows : tuning::kCostOfRows) +
                               (parts > 1 ? all(parts * outputs * channels, tuning::kCostOfParts) : 0);
          if (!least.first || moved <= least.second) least = {one, moved};
        }
    }
    return least;
  }
  // Each share of the outputs copies all of its channels' first operand, if that is copied, `area` elements of it for
  // each pixel; each share of the channels the second. As few copies as enough tasks allow, whose sums L2 keeps beside
  // panels.
  std::optional<Shares> shares_of_weights(std::int64_t blocks, std::int64_t channels, std::int64_t taps,
                                          std::int64_t area) const {
    if (weight_bytes() <= target_.l2_bytes / 2 || extent(roles_.outputs) % s_.block() != 0) return std::nullopt;
    const std::int64_t most_bytes = target_.l2_bytes / tuning::kSumsOfTaskInL2,
                       tasks = std::max<std::int64_t>(tasks_of_sums(), ir::ceil_divide(weight_bytes(), most_bytes));
    std::optional<Shares> best;
    std::int64_t least = 0;
    for (std::int64_t parts = 1; channels % (parts * s_.lanes) == 0; parts *= 2) {
      const Shares one{power_of_two_in(blocks, blocks * parts / tasks), channels / parts};
      if (one.channels < tuning::kLeastChannelsOfTask && parts > 1) break;
      if (blocks * parts < tasks || (one.blocks * s_.block() < 4 * s_.lanes && taps > 1) ||
          one.blocks * s_.block() * one.channels * taps * bytes(fused_.compute) > most_bytes)
        continue;
      const std::int64_t copies = channels * (blocks / one.blocks) * area * cost_of_copy(fused_.computes_a) +
                                  extent(roles_.outputs) * parts * cost_of_copy(fused_.computes_b);
      if (!best || copies < least) best = one, least = copies;
    }
    return best;
  }
  static std::int64_t cost_of_copy(bool computes) { return computes ? tuning::kCostOfComputing : 1; }
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
    s_.vectors = vectors_along_groups(taps);
    const std::int64_t blocks = ir::ceil_divide<std::int64_t>(groups, s_.block());
    const std::int64_t most = std::max<std::int64_t>(1, (registers - s_.vectors) / s_.vectors);
    const std::int64_t wanted = ir::ceil_divide<std::int64_t>(target_.tasks, blocks);
    const Split images = split(extent(n), fused_.beside_gradient ? extent(n) : wanted),
                row_blocks = fused_.beside_gradient
                                 ? rows_of_both_gradients(p, q)
                                 : split(extent(p), ir::ceil_divide<std::int64_t>(wanted, images.chunks));
    if (images.chunks > 1) add(s_.tasks, name(n), images.chunk == 1 ? 0 : images.chunk);
    if (row_blocks.chunks > 1) add(s_.tasks, name(p), row_blocks.chunk);
    add_if_any(s_.tasks, vector_);
    const bool panel =
        fused_.computes_a && product(planes) == 1 && panel_of_groups(n, p, q, images.chunk, row_blocks.chunk);
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
    const std::int64_t parts = ir::ceil_divide(panel_bytes(rows, columns, rows_of_task, s_.block()),
                                               std::max<std::int64_t>(1, target_.l2_bytes / 4));
    std::int64_t at_once = split(rows_of_task, parts).chunk;
    while (rows_of_task < extent(p) && rows_of_task % at_once != 0) --at_once;  // they fill those of a task
    if (panel_bytes(rows, columns, at_once, s_.block()) > target_.l2_bytes / 2) return false;
    if (images > 1) add(s_.outer, name(n));
    if (at_once < rows_of_task) add(s_.outer, name(p), at_once);
    s_.panel_a = s_.outer.empty() ? Schedule::kTask : s_.outer.back().dims[0];
    return true;
  }
};

}  // namespace

std::int64_t tasks_of_both_gradients(std::int64_t images, const Target& target) {
  const std::int64_t least = large_tasks(target);
  std::int64_t tasks = std::max<std::int64_t>(least, tuning::kTasksOfSums) / least * least;
  while (tasks > 0 && images % tasks != 0) tasks -= least;
  return tasks;
}

Schedule x86_weights(const ir::Contraction& contraction, const Target& target, const FusedWork& fused) {
  return TilesOfWeights(contraction, target, fused).run();
}

}  // namespace fusejit::scheduler
