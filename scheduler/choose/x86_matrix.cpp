// Contractions in bf16 where there is a matrix unit (AMX). With weights: rows of tiles are pixels side by side in a
// panel of what a task reads, columns are outputs. Weight gradients: rows are channels, and the terms pixels of two
// images each.
#include <algorithm>
#include <optional>

#include "ir/kernel/tile_nest.h"
#include "scheduler/choose/x86_chooser.h"
#include "scheduler/lower/split.h"

namespace fusejit::scheduler {
namespace {

bool multiplies(const ir::Contraction& c, const Target& target, const FusedWork& fused) {
  const auto is_narrow = [](const ir::ContractionOperand& operand) { return operand.dtype == DType::bf16; };
  return target.isa == Isa::x86_amx && is_narrow(c.a) && is_narrow(c.b) && fused.compute == DType::f32 &&
         c.outputs() > 0 && c.terms() > 0;
}

class RowsOfPixels : X86Chooser {
 public:
  using X86Chooser::X86Chooser;

  std::optional<Schedule> run() {
    if (along_groups_ || product(roles_.groups) != 1 || s_.lanes != ir::kTileColumns || roles_.pixels.empty() ||
        roles_.sums.empty())
      return std::nullopt;
    std::vector<int> images = roles_.pixels;
    const auto innermost = [&] {
      const int d = images.empty() ? -1 : images.back();
      if (!images.empty()) images.pop_back();
      return d;
    };
    const int q = innermost(), p = innermost(), channel = c_last();
    s_.dot = name(channel);
    if (!take_run_of_taps(q)) s_.matrix = terms_of_row(extent(channel)), s_.unroll = {{{s_.dot}, s_.matrix}};
    if (s_.matrix < tuning::kLeastTermsOfMatrix) return std::nullopt;
    s_.vectors = vectors_at_once();
    const std::int64_t rows = rows_of_tile(extent(q));
    if (rows < 2) return std::nullopt;
    s_.tile = {{{name(q)}, rows}};
    columns_ = columns_of_task(p, q, rows);

    const Tasks tasks = tasks_of(p, q, product(images), images.size() == 1);
    if (tasks.outputs < extent(vector_)) add(s_.tasks, s_.vector, tasks.outputs == s_.block() ? 0 : tasks.outputs);
    if (tasks.images > 1) {
      if (tasks.images < extent(images[0])) add(s_.tasks, name(images[0]), tasks.images);
      add(s_.inner, name(images[0]));
    } else {
      add_together(s_.tasks, images);
    }
    const std::int64_t together = rows_together(p, q, tasks.rows);
    if (together > 1) s_.tile = {{{name(p)}, together}, {{name(q)}, extent(q)}};
    const bool is_tile = tasks.rows == together && extent(p) % together == 0;
    if (tasks.rows < extent(p)) add(s_.tasks, name(p), is_tile ? 0 : tasks.rows);
    if (columns_ < extent(q)) add(s_.tasks, name(q), columns_);
    const bool row_by_row = s_.merges_taps() && tasks.rows > 1;  // weights of few channels stay near, unlike sums
    if (row_by_row) add(s_.outer, name(p));
    if (tasks.outputs > s_.block()) add(s_.outer, s_.vector);
    if (!is_tile && !row_by_row) add(s_.inner, name(p));
    if (extent(q) > rows) add(s_.inner, name(q));
    for (const int d : roles_.sums)
      if (extent(d) > s_.held(name(d))) add(s_.inner, name(d));
    if (!reads_in_place(p, q)) s_.panel_a = Schedule::kTask;
    s_.pack_b = s_.block();
    s_.stream = fused_.result_bytes >= target_.l3_bytes / 2;
    return s_;
  }

 private:
  std::int64_t channels_in_pairs() const { return extent(c_last()) + extent(c_last()) % 2; }

  // All of few channels, for as many neighbouring taps as make a row of the unit.
  bool take_run_of_taps(int q) {
    const Window columns = window_of(q);
    const std::int64_t channels = channels_in_pairs();
    const int taps = c_last() - 1;
    if (row_bytes(extent(q), q) > target_.l2_bytes / 2) return false;  // rows are not cut
    if (channels > tuning::kMostChannelsOfTaps || s_.lanes % std::max<std::int64_t>(1, channels / 2) != 0) return false;
    if (taps < 0 || columns.other != taps) return false;
    if (c_.a.index[static_cast<std::size_t>(columns.axis)].coefficient_of(taps) != 1) return false;
    std::int64_t count = 1;
    for (std::int64_t more = 2; more * channels <= 2 * ir::kTilePairs; ++more)
      if (extent(taps) % more == 0) count = more;
    if (count == 1) return false;
    s_.matrix = count * channels;
    s_.unroll = {{{name(taps)}, count}, {{s_.dot}, channels}};
    return true;
  }

  // What so many pixels of a row read.
  std::int64_t row_bytes(std::int64_t pixels, int q) const {
    return read_by(q, pixels) * channels_in_pairs() * bytes(DType::bf16);
  }
  // Whole rows, but of long ones so many tiles as L2 has room for, with the rows that a window reads.
  std::int64_t columns_of_task(int p, int q, std::int64_t tile) const {
    const Window rows = window_of(p);
    const auto takes = [&](std::int64_t pixels) { return rows.span * row_bytes(pixels, q) + pixels * s_.block() * 4; };
    if (s_.merges_taps() || takes(extent(q)) <= target_.l2_bytes) return extent(q);
    std::int64_t tiles = ir::ceil_divide(extent(q), tile);
    while (tiles > 1 && takes(tiles * tile) > target_.l2_bytes / 4) tiles = (tiles + 1) / 2;
    return tiles * tile;
  }

  // Channels that lie side by side, of single taps. Short rows of pixels that lie apart are copied: in a panel they
  // follow each other, and make fewer tiles.
  bool reads_in_place(int p, int q) const {
    const std::int64_t step = window_of(p).stride * window_of(q).stride;
    if (c_.a.has_windows(c_.dims) || fused_.computes_a || fused_.innermost_of_a < 0 || extent(c_last()) % 2 != 0)
      return false;
    if (step > 1 && 2 * extent(q) <= ir::kTileRows) return false;
    return c_.a.index[static_cast<std::size_t>(fused_.innermost_of_a)].coefficient_of(c_last()) == 1;
  }

  // The longest run of channels in pairs that divides them all.
  static std::int64_t terms_of_row(std::int64_t channels) {
    for (std::int64_t terms = 2 * ir::kTilePairs; terms > 2; terms -= 2)
      if (channels % terms == 0) return terms;
    return 0;
  }

  // Pixels of a tile of the nest: the most of those that make a row as few tiles of the unit as can be.
  static std::int64_t rows_of_tile(std::int64_t width) {
    std::int64_t best = 1, least = width + 1;
    for (std::int64_t rows = 2; rows <= std::min(width, tuning::kMostRowsOfMatrix); ++rows) {
      const std::int64_t tiles = width / rows * ir::tiles_of_rows(rows) + ir::tiles_of_rows(width % rows);
      if (tiles <= least) best = rows, least = tiles;
    }
    return best;
  }

  // Rows of pixels of a tile of the nest. Where they follow each other in memory, those that are fewer tiles of the
  // unit; else two, if a row is one tile, so that a tile of weights is multiplied twice.
  std::int64_t rows_together(int p, int q, std::int64_t of_task) const {
    if (s_.merges_taps() || p < 0 || p + 1 != q || of_task < 2 || extent(q) < 2 || columns_ < extent(q)) return 1;
    const auto fits = [&](std::int64_t count) { return of_task % count == 0 || extent(p) % of_task == 0; };
    const bool long_sums = c_.terms() >= tuning::kLeastTermsOfTwoRows;
    const std::int64_t two = ir::tiles_of_rows(extent(q)) == 1 && long_sums && fits(2) ? 2 : 1;
    const Window rows = window_of(p), columns = window_of(q);
    const bool all = rows.stride * columns.stride == 1 && rows.in == extent(p) && columns.in == extent(q);
    if (c_.a.has_windows(c_.dims) || (reads_in_place(p, q) && !all)) return two;
    std::int64_t best = two, least = of_task * ir::tiles_of_rows(extent(q)) - 1;
    for (std::int64_t count = 2; count <= of_task && count * extent(q) <= tuning::kMostRowsTogether; ++count) {
      const std::int64_t tiles =
          of_task / count * ir::tiles_of_rows(count * extent(q)) + ir::tiles_of_rows(of_task % count * extent(q));
      if (fits(count) && tiles <= least) best = count, least = tiles;
    }
    return best;
  }

  // Where the epilogue reads other tensors, each in pieces of a block, longer ones.
  int vectors_at_once() const {
    if (extent(vector_) <= s_.lanes) return 1;
    int vectors = 2;
    while (fused_.elements_read > 0 && vectors < tuning::kVectorsOfStreams &&
           extent(vector_) % (2 * vectors * s_.lanes) == 0)
      vectors *= 2;
    return vectors;
  }

  // Rows of an image, or whole images, and outputs of a task: those that move the fewest bytes between L2 and what is
  // behind it. Each share of the pixels reads all weights, each share of the outputs copies all that is read to its
  // panels, with the rows around; a panel stays in L2, and sums that leave L1 come and go.
  struct Tasks {
    std::int64_t images = 1, rows = 1, outputs = 1;
  };
  Tasks tasks_of(int p, int q, std::int64_t images, bool may_take_several) const {
    const Window rows = window_of(p);
    const std::int64_t taps = rows.span, outputs = extent(vector_), row = row_bytes(columns_, q) * rows.stride,
                       weights = c_.terms() * outputs * bytes(DType::bf16), sums = columns_ * s_.block() * 4,
                       parts_of_rows = ir::ceil_divide(extent(q), columns_);
    const auto at = [](std::int64_t n) { return static_cast<double>(n); };
    Tasks best;
    double least = 0;
    const auto consider = [&](const Tasks& one) {
      const std::int64_t parts =
                             ir::ceil_divide(images, one.images) * ir::ceil_divide(extent(p), one.rows) * parts_of_rows,
                         shares = ir::ceil_divide(outputs, one.outputs),
                         around = std::max<std::int64_t>(0, ir::ceil_divide(taps, rows.stride) - 1),
                         panel = (one.rows + around) * one.images * row,
                         held = s_.merges_taps() ? sums : one.images * one.rows * sums;
      double cost = at(parts * weights) * (weights <= target_.l2_bytes / 2 ? tuning::kCostFromL2 : 1) +
                    at(parts * shares * panel) * tuning::kCostOfPanel;
      if (!s_.merges_taps() && (taps > 1 ? 2 : 3) * held > target_.l1_bytes)
        cost += at(2 * images * extent(p) * extent(q) * outputs * 4);
      if (2 * (panel + held) > target_.l2_bytes) cost += at(2 * parts * shares * panel);
      const std::int64_t wanted = std::min<std::int64_t>(target_.tasks, tuning::kTasksOfPanels);
      if (parts * shares < wanted) cost *= at(wanted) / at(parts * shares);
      if (least == 0 || cost < least) best = one, least = cost;
    };
    for (std::int64_t shares = 1; shares == 1 || outputs / shares >= s_.block(); shares *= 2) {
      if (outputs % (shares * s_.block()) != 0 && shares > 1) break;
      const std::int64_t of_task = shares == 1 ? std::max<std::int64_t>(outputs, s_.block()) : outputs / shares;
      for (std::int64_t of_rows = 1; of_rows <= extent(p); ++of_rows)
        if (!s_.merges_taps() || extent(p) % of_rows == 0) consider({1, of_rows, of_task});
      for (std::int64_t several = 2; may_take_several && several <= images; ++several)
        if (images % several == 0) consider({several, extent(p), of_task});
    }
    return best;
  }

  std::int64_t columns_ = 1;  // of a task
};

class RowsOfChannels : X86Chooser {
 public:
  using X86Chooser::X86Chooser;

  std::optional<Schedule> run() {
    if (along_groups_ || product(roles_.groups) != 1 || s_.lanes != ir::kTileColumns) return std::nullopt;
    const auto [windows, images] = by_window(roles_.sums, roles_.pixels, c_);
    const auto [taps, channels] = by_window(roles_.pixels, roles_.sums, c_);
    if (windows.size() != 2 || images.size() != 1 || channels.size() != 1) return std::nullopt;
    const int n = images[0], p = windows[0], q = windows[1], channel = channels[0], outputs = roles_.outputs;
    if (!lies_innermost(c_.a, channel) || !lies_innermost(c_.b, outputs) || c_.dims.back().name != name(q) ||
        extent(n) % 2 != 0)
      return std::nullopt;
    s_.vectors = extent(outputs) % (2 * s_.lanes) == 0 ? 2 : 1;
    if (extent(outputs) % s_.block() != 0 || extent(channel) % ir::kTileRows != 0) return std::nullopt;
    const std::int64_t rows = extent(channel) % (2 * ir::kTileRows) == 0 ? 2 * ir::kTileRows : ir::kTileRows;
    s_.tile = {{{name(channel)}, rows}};
    const bool makes_runs = window_of(q).stride == 1 || extent(window_of(q).other) == 1;
    share_out(extent(n), makes_runs ? 2 : 2 * ir::kTilePairs, extent(p), extent(channel), extent(outputs),
              product(taps));
    if (!take_run(n, q, makes_runs)) return std::nullopt;

    if (images_ < extent(n)) add(s_.tasks, name(n), images_ == s_.held(name(n)) ? 0 : images_);
    if (rows_ < extent(p)) add(s_.tasks, name(p), rows_ == 1 ? 0 : rows_);
    if (outputs_ < extent(outputs)) add(s_.tasks, name(outputs), outputs_ == s_.block() ? 0 : outputs_);
    if (channels_ < extent(channel)) add(s_.tasks, name(channel), channels_);
    const std::int64_t at_once = rows_at_once(p, q), columns = columns_at_once(p, q, at_once);
    if (columns == 0) return std::nullopt;
    if (at_once < rows_) add(s_.outer, name(p), at_once == 1 ? 0 : at_once);
    if (columns < extent(q)) add(s_.outer, name(q), columns == s_.held(name(q)) ? 0 : columns);
    s_.panel_a = s_.panel_b = s_.outer.empty() ? Schedule::kTask : s_.outer.back().dims[0];
    if (outputs_ > s_.block()) add(s_.outer, name(outputs));
    for (const int d : taps) add_if_any(s_.outer, d);
    if (channels_ > rows) add(s_.outer, name(channel));
    if (at_once > 1) add(s_.inner, name(p));
    if (columns > s_.held(name(q))) add(s_.inner, name(q));
    if (images_ > s_.held(name(n))) add(s_.inner, name(n));
    s_.combine = {name(outputs)};
    if (!fused_.lie_together.empty()) s_.combine = names(fused_.lie_together);
    return s_;
  }

 private:
  bool lies_innermost(const ir::ContractionOperand& operand, int d) const {
    const int axis = &operand == &c_.a ? fused_.innermost_of_a : fused_.innermost_of_b;
    return axis >= 0 && operand.index[static_cast<std::size_t>(axis)].coefficient_of(d) == 1;
  }

  // Images first and then rows, whose parts copy nothing twice, as long as the sums of all parts are few; then outputs,
  // for each share of which all channels are copied again, down to so many; then channels.
  void share_out(std::int64_t images, std::int64_t least_images, std::int64_t rows, std::int64_t channels,
                 std::int64_t outputs, std::int64_t taps) {
    const std::int64_t weights = channels * outputs * taps * bytes(DType::f32);
    images_ = images, rows_ = rows, channels_ = channels, outputs_ = outputs;
    const auto parts = [&] { return images / images_ * (rows / rows_); };
    for (std::int64_t fewer = images - 2; fewer >= least_images && parts() < tuning::kTasksOfSums; fewer -= 2)
      if (images % fewer == 0 && images / fewer * weights <= target_.l2_bytes) images_ = fewer;
    for (std::int64_t more = 2; more <= rows && parts() < tuning::kTasksOfSums; ++more)
      if (rows % more == 0 && images / images_ * more * weights <= target_.l2_bytes) rows_ = rows / more;
    const auto halve = [](std::int64_t& size, std::int64_t unit) {
      if (size % (2 * unit) != 0) return false;
      size /= 2;
      return true;
    };
    const std::int64_t most = std::max<std::int64_t>(1, target_.l2_bytes / tuning::kSumsOfTaskInL2);
    const auto is_enough = [&] {
      return parts() * (channels / channels_) * (outputs / outputs_) >=
                 std::max(tuning::kSharesOfMatrix, large_tasks(target_)) &&
             channels_ * outputs_ * taps * bytes(DType::f32) <= most;
    };
    // A loop of tasks for each dim that is cut, of which there are no more than so many.
    const auto may_cut = [&](std::int64_t size, std::int64_t whole) {
      const std::size_t cut = static_cast<std::size_t>(images_ < images) + static_cast<std::size_t>(rows_ < rows) +
                              static_cast<std::size_t>(channels_ < channels) +
                              static_cast<std::size_t>(outputs_ < outputs);
      return size < whole || cut < kMostTaskLoops;
    };
    const auto halve_outputs = [&] { return may_cut(outputs_, outputs) && halve(outputs_, s_.block()); };
    while (!is_enough() && outputs_ > tuning::kOutputsOfMatrix && halve_outputs()) {
    }
    while (!is_enough() && channels_ > tuning::kChannelsOfMatrix && may_cut(channels_, channels) &&
           halve(channels_, s_.tile[0].count)) {
    }
    while (!is_enough() && halve_outputs()) {
    }
  }

  // Pairs of images, and of neighbouring pixels as many as make a row of a matrix unit.
  bool take_run(int n, int q, bool of_pixels) {
    const std::int64_t pairs = images_ / 2;
    std::int64_t of_images = std::min(pairs, ir::kTilePairs);
    while (pairs % of_images != 0) --of_images;
    std::int64_t pixels = 1;
    if (of_images == pairs && of_pixels)
      for (std::int64_t more = 2; more * pairs <= ir::kTilePairs; ++more)
        if (extent(q) % more == 0) pixels = more;
    if (pixels > 1) s_.unroll.push_back({{name(q)}, pixels});
    s_.unroll.push_back({{name(n)}, 2 * of_images});
    s_.dot = name(n), s_.matrix = 2 * of_images * pixels;
    return s_.matrix >= tuning::kLeastTermsOfMatrix;
  }

  // Of both operands, for so many rows of so many pixels.
  std::int64_t panels(int p, int q, std::int64_t rows_at_once, std::int64_t pixels) const {
    const Window rows = window_of(p);
    const std::int64_t pairs = images_ / 2 * bytes(DType::u32),
                       a = 2 * read_by(q, pixels) * channels_ * pairs * rows.stride, b = pixels * outputs_ * pairs,
                       around = rows.span - 1;
    return (rows_at_once + around) * a + rows_at_once * b;
  }
  // Whose panels L2 keeps beside the sums.
  std::int64_t rows_at_once(int p, int q) const {
    std::int64_t best = 1;
    for (std::int64_t count = 1; count <= rows_; ++count)
      if (rows_ % count == 0 && panels(p, q, count, extent(q)) <= target_.l2_bytes / 4) best = count;
    return best;
  }
  // All of a row, unless L2 has no room for its panels; 0: it cannot be cut.
  std::int64_t columns_at_once(int p, int q, std::int64_t rows_at_once) const {
    if (panels(p, q, rows_at_once, extent(q)) <= target_.l2_bytes) return extent(q);
    std::int64_t best = 0;
    for (std::int64_t count = s_.held(name(q)); count < extent(q); count += s_.held(name(q)))
      if (extent(q) % count == 0 && panels(p, q, rows_at_once, count) <= target_.l2_bytes / 4) best = count;
    return best;
  }

  std::int64_t images_ = 1, rows_ = 1, channels_ = 1, outputs_ = 1;  // of a task
};

}  // namespace

std::optional<Schedule> x86_matrix(const ir::Contraction& contraction, const Target& target, const FusedWork& fused) {
  if (!multiplies(contraction, target, fused)) return std::nullopt;
  return contraction.b.weights ? RowsOfPixels(contraction, target, fused).run()
                               : RowsOfChannels(contraction, target, fused).run();
}

}  // namespace fusejit::scheduler
