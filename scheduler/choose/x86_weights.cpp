// Weight gradients: a tile of weights stays in registers while pixels pass.
#include <algorithm>

#include "ir/base/check.h"
#include "scheduler/choose/x86_chooser.h"
#include "scheduler/lower/split.h"

namespace fusejit::scheduler {
namespace {

class TilesOfWeights : X86Chooser {
 public:
  TilesOfWeights(const ir::Contraction& c, const Target& target, const FusedWork& fused)
      : X86Chooser(c, target, fused), sum_(summed_images()), taps_and_channel_(taps_and_channel()) {}

  Schedule run() {
    along_groups_ ? sums_along_groups() : tiles_of_weights();
    return s_;
  }

 private:
  static constexpr int kVectorsOfTiles = 2;

  // What a weight gradient sums up: images, the rows and columns of each, and what lies between those.
  struct SummedImages {
    int images = -1;
    std::vector<int> planes;
    int rows = -1, columns = -1;
  };
  struct TapsAndChannel {
    std::vector<int> taps;
    int channel = -1;
  };
  // What a task has of all weights: blocks of outputs, channels. Parts of the images, each of which is a sum.
  struct Shares {
    std::int64_t blocks = 1, channels = 1, parts = 1;
  };
  // Pixels of a task, and those that pass by before the next tile has its turn.
  struct Pixels {
    std::int64_t rows_of_task = 1, columns_of_task = 1;
    Split rows;  // of a task, in blocks that pass by
    std::int64_t columns = 1, images = 1;
    bool cut_columns() const { return columns < columns_of_task; }
    bool have_next() const { return cut_columns() || rows.chunks > 1; }
  };

  // A sum over pixels: a tile of weights stays in registers while a block of pixels passes; partial sums of image
  // blocks are added in a fixed order.
  void tiles_of_weights() {
    choose_tile();
    share_out_weights();
    const Split parts = parts_of_images();
    if (parts.chunks > 1) add(s_.tasks, name(sum_.images), parts.chunk == at_once() ? 0 : parts.chunk);
    add_together(s_.tasks, roles_.groups);
    if (together_ == 1 || together_ < blocks_)
      add_if_any(s_.tasks, roles_.outputs, together_ == 1 ? 0 : together_ * s_.block());
    const Pixels pixels = pixels_of_task(parts.chunk, parts_of_rows(parts));
    if (pixels.rows_of_task < extent(sum_.rows)) add(s_.tasks, name(sum_.rows), pixels.rows_of_task);
    if (pixels.columns_of_task < extent(sum_.columns)) add(s_.tasks, name(sum_.columns), pixels.columns_of_task);
    if (channels_of_task() < channels()) add(s_.tasks, name(taps_and_channel_.channel), channels_of_task());

    if (parts.chunk > pixels.images) add(s_.outer, name(sum_.images), pixels.images == at_once() ? 0 : pixels.images);
    for (const int d : sum_.planes) add_if_any(s_.outer, d);
    if (pixels.rows.chunks > 1) add(s_.outer, name(sum_.rows), pixels.rows.chunk);
    if (pixels.cut_columns()) add(s_.outer, name(sum_.columns), pixels.columns);
    if (in_panel_) s_.panel_a = innermost();
    s_.tiles_a = tiles_ || sums_in_l2_;
    if (together_ > 1) add(s_.outer, name(roles_.outputs));
    if ((!few_ && !tiles_) || dot_ || fused_.computes_b) s_.panel_b = innermost();
    few_ ? tile_of_taps(pixels) : tile_of_channels(pixels);
    if (pixels.images > at_once()) add(s_.inner, name(sum_.images));
    add_inner_window(sum_.rows);
    add_inner_window(sum_.columns);
    s_.combine = {lies_last(taps_and_channel_.channel) && channels() >= s_.lanes ? name(taps_and_channel_.channel)
                                                                                 : name(roles_.outputs)};
    if (product(fused_.lie_together) >= s_.lanes) s_.combine = names(fused_.lie_together);
  }

  // Its vectors, how they are multiplied, and whether the first operand is copied for it.
  void choose_tile() {
    const std::int64_t groups = product(roles_.groups);
    s_.vectors =
        outputs() > s_.lanes && (groups == 1 || outputs() % s_.lanes != 0 || outputs() % (2 * s_.lanes) == 0) ? 2 : 1;
    few_ = channels() < tuning::kFewChannels;
    dot_ = groups == 1 && multiplies_pairs(sum_.images) && taps() * channels() >= tuning::kLeastWeightsOfPairs;
    if (groups == 1 && has_many_registers() && target_.fma_per_cycle == 2 && outputs() % (4 * s_.lanes) == 0 &&
        (few_ || (!dot_ && suits_wide_tile())))
      s_.vectors = 4;
    // Images of pixels, multiplied by FMA.
    const bool plain = !few_ && !dot_ && groups == 1 && product(sum_.planes) == 1;
    if (plain && taps() == 1) shares_ = shares_in_l2();
    sums_in_l2_ = shares_.has_value();
    tiles_ = plain && !sums_in_l2_ && stride_of_pixel() == 1 && suits_tiles();
    if (tiles_) s_.vectors = kVectorsOfTiles;
    if (dot_) s_.dot = name(sum_.images), s_.unroll = {{{name(sum_.images)}, 2}};
    in_panel_ = dot_ || tiles_ || fused_.computes_a || sums_in_l2_;
  }

  // Tasks share out outputs and channels where those are many, else outputs and images.
  void share_out_weights() {
    blocks_ = ir::ceil_divide<std::int64_t>(outputs(), s_.block());
    if (!few_ && product(roles_.groups) == 1 && !tiles_ && !shares_ &&
        (in_panel_ || weight_bytes() > tuning::kSharedWeightsOfL2 * target_.l2_bytes))
      shares_ = shares_of_weights(in_panel_ ? area_of_pixel() : 0);
    together_ = shares_ ? shares_->blocks : tiles_ ? blocks_of_tiles() : in_panel_ ? blocks_of_panel() : 1;
  }
  std::int64_t tasks_of_weights() const {
    return shares_ ? target_.tasks : blocks_ / together_ * product(roles_.groups);
  }
  // Every part of the sum is a partial result of all weights in memory: few parts ...
  std::int64_t few_parts() const { return ir::ceil_divide<std::int64_t>(large_tasks(target_), tasks_of_weights()); }
  // ... unless all of them stay in L2.
  Split parts_of_images() const {
    const std::int64_t wanted = ir::ceil_divide<std::int64_t>(target_.tasks, tasks_of_weights()),
                       in_l2 = target_.l2_bytes / std::max<std::int64_t>(1, weight_bytes());
    Split parts = split(extent(sum_.images) / at_once(),
                        shares_ ? shares_->parts : std::min(wanted, std::max(few_parts(), in_l2)));
    parts = of_one_size(parts);
    parts.chunk *= at_once();
    return parts;
  }
  // Of one image, or few, parts of the rows, or of the only row.
  std::int64_t parts_of_rows(const Split& parts) const {
    std::int64_t wanted = 1;
    if (dot_ && few_ && product(sum_.planes) == 1) {
      wanted = few_parts() / parts.chunks;
    } else if (parts.chunk == at_once() && product(sum_.planes) == 1 && !shares_ && s_.tasks.size() < kMostTaskLoops) {
      wanted =
          std::min(few_parts() / parts.chunks, extent(sum_.rows) * extent(sum_.columns) / tuning::kLeastPixelsOfPart);
    }
    return std::max<std::int64_t>(1, wanted);
  }

  // What passes by are pixels of which the second operand's block, copied side by side, stays in L1 beside the first
  // operand; rows, or several images where one is small. Enough that reading and writing the tile is little beside it.
  Pixels pixels_of_task(std::int64_t images_of_task, std::int64_t parts_of_rows) const {
    const std::int64_t two_vectors = std::min<std::int64_t>(s_.block(), 2 * s_.lanes), p = extent(sum_.rows),
                       q = extent(sum_.columns), part_of_columns = split(q, p > 1 ? 1 : parts_of_rows).chunk;
    Pixels pixels;
    pixels.columns =
        fused_.beside_gradient  // whole rows meet those of the other
            ? q
            : columns_at_once(part_of_columns, tiles_ ? tuning::kMostPixelsOfTile : pixels_in_l1(two_vectors));
    pixels.columns_of_task = whole_blocks(part_of_columns, pixels.columns, q);
    const std::int64_t part_of_rows = split(p, parts_of_rows).chunk, wanted = rows_wanted(pixels.columns),
                       at_once_of_rows = evenly(part_of_rows, wanted);
    pixels.rows_of_task = whole_blocks(part_of_rows, at_once_of_rows, p);
    pixels.rows = split(pixels.rows_of_task, ir::ceil_divide(pixels.rows_of_task, at_once_of_rows));
    pixels.images = at_once();
    if (pixels.rows.chunks == 1 && pixels.rows_of_task == p && pixels.columns == q && product(sum_.planes) == 1) {
      std::int64_t images = std::min(images_of_task, at_once() * wanted / std::max<std::int64_t>(p, 1));
      while (images > at_once() && (images_of_task % images != 0 || images % at_once() != 0)) --images;
      pixels.images = std::max(images, at_once());
    }
    return pixels;
  }
  std::int64_t pixels_in_l1(std::int64_t outputs_of_pixel) const {
    const auto in_l1 = static_cast<std::int64_t>(static_cast<double>(target_.l1_bytes) * tuning::kPanelOfL1);
    return std::max<std::int64_t>(1, in_l1 / (outputs_of_pixel * (dot_ ? 2 : bytes(fused_.compute))));
  }
  std::int64_t rows_wanted(std::int64_t columns) const {
    if (tiles_) return rows_of_tiles(columns);
    const bool copies_rows_again = few_ && in_panel_ && !taps_and_channel_.taps.empty();  // most of them, at each block
    return std::max<std::int64_t>(
        copies_rows_again ? extent(taps_and_channel_.taps[0]) : 1,
        pixels_in_l1(few_ ? s_.block() : std::min(s_.block(), std::int64_t{2} * s_.lanes)) / columns);
  }
  // A task has whole blocks of them.
  static std::int64_t whole_blocks(std::int64_t chunk, std::int64_t block, std::int64_t all) {
    return std::min(all, ir::ceil_divide(chunk, block) * block);
  }

  // The taps of a row share a tile.
  void tile_of_taps(const Pixels& pixels) {
    const std::vector<int>& taps_of = taps_and_channel_.taps;
    for (const int d : taps_of)
      if (d != taps_of.back()) add_if_any(s_.outer, d);
    const std::int64_t pairs = extent(taps_of.back()) * channels(), tiles = ir::ceil_divide(pairs, most_in_tile());
    s_.tile = {{{name(taps_of.back()), name(taps_and_channel_.channel)}, ir::ceil_divide(pairs, tiles)}};
    s_.outer.push_back({s_.tile[0].dims, 0});
    if ((in_panel_ || fused_.computes_b) && pixels.have_next()) s_.fetch = next_of(pixels);
  }
  void tile_of_channels(const Pixels& pixels) {
    const int channel = taps_and_channel_.channel;
    const std::int64_t width = width_of(channels_of_task(), most_in_tile());
    if (width > 1) s_.tile = {{{name(channel)}, width}};
    if (tiles_) add_if_any(s_.outer, channel);  // whose pixels stay in L1 while taps pass
    for (const int d : taps_and_channel_.taps) add_if_any(s_.outer, d);
    if (!tiles_) add_if_any(s_.outer, channel);
    if (pixels.have_next()) {
      s_.fetch = next_of(pixels);
    } else if (taps() == 1 || pixels.images == at_once()) {  // else tiles pass over small images often enough
      s_.fetch = {{name(sum_.images)}, pixels.images};
    }
    // Else what is fetched of the first operand for the next turn would take the place of what is read in this one.
    s_.fetch_b = !s_.tiles_a && !s_.fetch.dims.empty() && shares_sets(sum_.columns, channel);
  }
  std::int64_t most_in_tile() const { return std::min(vectors_in_registers(), tuning::kMostPixels); }
  // What passes by next.
  Extent next_of(const Pixels& pixels) const {
    return pixels.cut_columns() ? Extent{{name(sum_.columns)}, pixels.columns}
                                : Extent{{name(sum_.rows)}, pixels.rows.chunk};
  }
  std::string innermost() const { return s_.outer.empty() ? Schedule::kTask : s_.outer.back().dims[0]; }

  std::int64_t outputs() const { return extent(roles_.outputs); }
  std::int64_t channels() const { return extent(taps_and_channel_.channel); }
  std::int64_t channels_of_task() const { return shares_ ? shares_->channels : channels(); }
  std::int64_t taps() const { return product(taps_and_channel_.taps); }
  std::int64_t at_once() const { return dot_ ? 2 : 1; }  // images
  std::int64_t stride_of_pixel() const { return window_of(sum_.rows).stride * window_of(sum_.columns).stride; }

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
  bool suits_wide_tile() const {
    if (channels() * taps() < tuning::kLeastWeightsOfWideTile) return false;
    const std::int64_t area = area_of_pixel();
    return taps() == 1 || (area > 1 && waits_for_l2(target_)) ||
           (area == 1 && (weight_bytes() <= target_.l2_bytes / 4 || outputs() >= tuning::kLeastOutputsOfWideTaps));
  }
  // The first operand is laid out tile by tile, so that a long run of pixels passes before the next tile: where weights
  // are few, each element is multiplied so often that its copy is little, and images alone are tasks enough.
  bool suits_tiles() const {
    const std::int64_t block = kVectorsOfTiles * s_.lanes;
    if (!has_many_registers() || target_.fma_per_cycle != 2 || outputs() % block != 0) return false;
    if (channels() < tuning::kLeastChannelsOfTask || outputs() * taps() < tuning::kLeastUsesOfTile) return false;
    if (extent(sum_.images) * (outputs() / block / blocks_of_tiles()) < large_tasks(target_)) return false;
    if (taps() > 1) return weight_bytes() <= part_of_l2(tuning::kSumsOfTilesInL2);
    if (fused_.computes_a || fused_.computes_b) return false;  // those wait for memory: two shorter panels are better
    return weight_bytes() <= target_.l2_bytes / 8
               ? 2 * outputs() >= channels()
               : weight_bytes() <= target_.l2_bytes / 4 && outputs() >= 2 * channels();
  }
  // Blocks of outputs that one panel of tiles is for: their sums stay in L2 beside it.
  std::int64_t blocks_of_tiles() const {
    const std::int64_t block = kVectorsOfTiles * s_.lanes, sums = block * channels() * taps() * bytes(fused_.compute);
    return divisor_up_to(outputs() / block, std::max<std::int64_t>(1, part_of_l2(tuning::kSumsOfTilesInL2) / sums));
  }
  // Pixels of a row that pass by at once: all, unless those are many times what L1 has room for.
  static std::int64_t columns_at_once(std::int64_t columns, std::int64_t room) {
    return columns <= tuning::kRoomsOfRow * room ? std::max<std::int64_t>(1, columns) : evenly(columns, room);
  }
  // Rows of so many pixels that a panel of tiles is for.
  std::int64_t rows_of_tiles(std::int64_t columns) const {
    if (taps() == 1) return ir::ceil_divide(tuning::kPixelsOfTile, columns);
    const std::int64_t pixels = read_by(sum_.columns, columns),
                       row = std::max<std::int64_t>(1, pixels * channels() * bytes(fused_.compute)),
                       around = window_of(sum_.rows).span - 1,
                       fit = part_of_l2(tuning::kPanelOfTilesInL2) / row - around;
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
  std::int64_t area_of_pixel() const { return taps() == 1 ? 1 : stride_of_pixel(); }
  // Tasks whose sums stay in L2: of single taps, with all weights where a task computes the other gradient too, block
  // by block, and needs all channels for that.
  std::optional<Shares> shares_in_l2() const {
    if (!fused_.beside_gradient) return keeps_sums_in_l2() ? least_moved() : std::nullopt;
    if (outputs() % s_.block() != 0) return std::nullopt;
    return Shares{outputs() / s_.block(), channels(), tasks_of_both_gradients(extent(sum_.images), target_)};
  }
  bool keeps_sums_in_l2() const {
    return waits_for_l2(target_) && channels() >= tuning::kLeastChannelsInL2 &&
           outputs() >= (fused_.computes_b ? tuning::kLeastComputedInL2 : tuning::kLeastOutputsInL2) &&
           outputs() % s_.block() == 0;
  }
  // The first operand is copied for each share of the outputs, the second for each share of the channels, all weights
  // are written and read again for each part of the images: as few elements as enough tasks allow.
  std::optional<Shares> least_moved() const {
    const auto [enough, moved_by_enough] = least_moved(2 * large_tasks(target_));
    const auto [fewer, moved_by_fewer] = least_moved(large_tasks(target_));
    if (!enough || (fewer && moved_by_enough > tuning::kWorthOfTasks * moved_by_fewer)) return fewer;
    return enough;
  }
  std::pair<std::optional<Shares>, double> least_moved(std::int64_t tasks) const {
    const std::int64_t images = extent(sum_.images), blocks = outputs() / s_.block();
    std::pair<std::optional<Shares>, double> least;
    for (std::int64_t parts = 1; parts <= std::min(images, tasks); ++parts) {
      if (images % parts != 0) continue;
      for (std::int64_t of_outputs = 1; of_outputs <= std::min(blocks, tasks); of_outputs *= 2)
        for (std::int64_t of_channels = 1; of_channels <= tasks; of_channels *= 2) {
          if (blocks % of_outputs != 0 || channels() % of_channels != 0) continue;
          const Shares one{blocks / of_outputs, channels() / of_channels, parts};
          if (parts * of_outputs * of_channels < tasks || one.channels < tuning::kLeastChannelsOfTask ||
              one.blocks * s_.block() * one.channels * bytes(fused_.compute) > target_.l2_bytes / 2)
            continue;
          const double moved = moved_by(of_outputs, of_channels, parts);
          if (!least.first || moved <= least.second) least = {one, moved};
        }
    }
    return least;
  }
  double moved_by(std::int64_t of_outputs, std::int64_t of_channels, std::int64_t parts) const {
    const std::int64_t pixels = extent(sum_.images) * extent(sum_.rows) * extent(sum_.columns);
    const auto all = [](std::int64_t elements, double cost) { return static_cast<double>(elements) * cost; };
    return all(pixels * channels() * of_outputs, tuning::kCostOfTiles) +
           all(pixels * outputs() * of_channels,
               fused_.computes_b ? tuning::kCostOfComputedRows : tuning::kCostOfRows) +
           (parts > 1 ? all(parts * outputs() * channels(), tuning::kCostOfParts) : 0);
  }
  // Each share of the outputs copies all of its channels' first operand, if that is copied, `area` elements of it for
  // each pixel; each share of the channels the second. As few copies as enough tasks allow, whose sums L2 keeps beside
  // panels.
  std::optional<Shares> shares_of_weights(std::int64_t area) const {
    if (weight_bytes() <= target_.l2_bytes / 2 || outputs() % s_.block() != 0) return std::nullopt;
    const std::int64_t most_bytes = target_.l2_bytes / tuning::kSumsOfTaskInL2,
                       tasks =
                           std::max<std::int64_t>(large_tasks(target_), ir::ceil_divide(weight_bytes(), most_bytes));
    std::optional<Shares> best;
    std::pair<bool, std::int64_t> least;
    for (std::int64_t parts = 1; channels() % (parts * s_.lanes) == 0; parts *= 2) {
      const Shares one{power_of_two_in(blocks_, blocks_ * parts / tasks), channels() / parts};
      if (one.channels < tuning::kLeastChannelsOfTask && parts > 1) break;
      if (blocks_ * parts < tasks || (one.blocks * s_.block() < 4 * s_.lanes && taps() > 1) ||
          one.blocks * s_.block() * one.channels * taps() * bytes(fused_.compute) > most_bytes)
        continue;
      const std::int64_t copies = channels() * (blocks_ / one.blocks) * area * cost_of_copy(fused_.computes_a) +
                                  outputs() * parts * cost_of_copy(fused_.computes_b);
      const bool idle = leaves_idle(blocks_ / one.blocks * parts);
      if (!best || std::pair(idle, copies) < least) best = one, least = {idle, copies};
    }
    return best;
  }
  // Of tasks that processors take in turns, two of the large ones each: more than a tenth is idle in the last turn.
  bool leaves_idle(std::int64_t tasks) const {
    const std::int64_t processors = std::max<std::int64_t>(1, large_tasks(target_) / 2);
    return 10 * (ir::ceil_divide(tasks, processors) * processors - tasks) > tasks;
  }
  static std::int64_t cost_of_copy(bool computes) { return computes ? tuning::kCostOfComputing : 1; }
  // All weights as sums: what a part of the images adds up.
  std::int64_t weight_bytes() const { return c_.outputs() * bytes(fused_.compute); }
  // Blocks of outputs that a panel of the first operand is for: as many as make its copy little beside the products. A
  // prologue's copy is read ahead, so it is worth less than sums that stay in L2; where many taps read it, it is
  // little.
  std::int64_t blocks_of_panel() const {
    const std::int64_t sums = s_.block() * channels() * taps() * bytes(fused_.compute),
                       fit = target_.l2_bytes / tuning::kSumsOfPanelInL2 / sums,
                       uses = ir::ceil_divide<std::int64_t>(tuning::kLeastUsesOfPanel, taps() * s_.block()),
                       of_prologue = taps() == 1 ? std::clamp<std::int64_t>(fit, 1, uses) : 1;
    const bool leaves_l2 = weight_bytes() > target_.l2_bytes / 2;
    std::int64_t shared = std::min(dot_ ? uses : of_prologue,
                                   leaves_l2 ? std::max<std::int64_t>(1, blocks_ / large_tasks(target_)) : blocks_);
    while (shared > 1 && shared < blocks_ && outputs() % (shared * s_.block()) != 0) --shared;
    return shared;
  }
  SummedImages summed_images() const {
    const auto [windows, others] = by_window(roles_.sums, roles_.pixels, c_);
    FJ_ASSERT(others.size() == 1 && !windows.empty(), "no windows over images in {}", str(c_));
    if (windows.size() == 1) return {others[0], {}, -1, windows[0]};
    return {others[0], {windows.begin(), windows.end() - 2}, *(windows.end() - 2), windows.back()};
  }
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
    const auto& [n, planes, p, q] = sum_;
    const auto& [tap_dims, channel] = taps_and_channel_;
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
    s_.panel_a = innermost();
    return true;
  }

  const SummedImages sum_;
  const TapsAndChannel taps_and_channel_;
  // Decided one after the other.
  bool few_ = false;         // channels, so that taps share a tile
  bool dot_ = false;         // two images are multiplied at once
  bool tiles_ = false;       // the first operand is laid out tile by tile for long runs of pixels ...
  bool sums_in_l2_ = false;  // ... or so that a task's sums stay in L2
  bool in_panel_ = false;    // the first operand is copied
  std::optional<Shares> shares_;
  std::int64_t blocks_ = 1, together_ = 1;  // of outputs: all, those that one panel of the first operand is for
};

}  // namespace

std::int64_t tasks_of_both_gradients(std::int64_t images, const Target& target) {
  const std::int64_t least = large_tasks(target);
  std::int64_t tasks = std::max<std::int64_t>(least, tuning::kTasksOfBothGradients) / least * least;
  while (tasks > 0 && images % tasks != 0) tasks -= least;
  return tasks;
}

Schedule x86_weights(const ir::Contraction& contraction, const Target& target, const FusedWork& fused) {
  return TilesOfWeights(contraction, target, fused).run();
}

}  // namespace fusejit::scheduler
