// Contractions with weights in bf16 where there is a matrix unit (AMX): rows of tiles are pixels side by side in a
// panel of what a task reads, columns are outputs.
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
    if (along_groups_ || product(roles_.groups) != 1 || s_.lanes != ir::kTileColumns || roles_.pixels.empty() || roles_.sums.empty()) return std::nullopt;
    std::vector<int> images = roles_.pixels;
    const auto innermost = [&] {
      const int d = images.empty() ? -1 : images.back();
      if (!images.empty()) images.pop_back();
      return d;
    };
    const int q = innermost(), p = innermost(), channel = c_last();
    s_.dot = name(channel), s_.matrix = terms_of_row(extent(channel));
    if (s_.matrix < tuning::kLeastTermsOfMatrix) return std::nullopt;
    s_.unroll = {{{s_.dot}, s_.matrix}};
    s_.vectors = extent(vector_) > s_.lanes ? 2 : 1;
    const std::int64_t rows = rows_of_tile(extent(q));
    if (rows < 2) return std::nullopt;
    s_.tile = {{{name(q)}, rows}};

    const Split blocks = split(extent(p), row_blocks(q, p, product(images)));
    add_together(s_.tasks, images);
    if (blocks.chunks > 1) add(s_.tasks, name(p), blocks.chunk == 1 ? 0 : blocks.chunk);
    add_if_any(s_.outer, vector_);
    if (blocks.chunks == 1 || blocks.chunk > 1) add_if_any(s_.inner, p);
    if (extent(q) > rows) add(s_.inner, name(q));
    for (const int d : roles_.sums)
      if (extent(d) > (d == channel ? s_.matrix : 1)) add(s_.inner, name(d));
    s_.panel_a = Schedule::kTask;
    s_.pack_b = s_.block();
    s_.stream = fused_.result_bytes >= target_.l3_bytes / 2;
    return s_;
  }

 private:
  // The longest run of channels in pairs that divides them all.
  static std::int64_t terms_of_row(std::int64_t channels) {
    for (std::int64_t terms = 2 * ir::kTilePairs; terms > 2; terms -= 2)
      if (channels % terms == 0) return terms;
    return 0;
  }

  // Pixels of a tile: as few tiles of a matrix unit as can be, of equal heights.
  static std::int64_t rows_of_tile(std::int64_t width) {
    const auto cost = [&](std::int64_t rows) -> std::int64_t {
      const auto tiles = [](std::int64_t n) { return n == 0 ? 0 : ir::tiles_of_rows(n); };
      const std::int64_t rest = width % rows;
      if (rows % tiles(rows) != 0 || (rest > 0 && rest % tiles(rest) != 0)) return width + 1;
      return width / rows * tiles(rows) + tiles(rest);
    };
    std::int64_t best = 1;
    for (std::int64_t rows = 2; rows <= std::min(width, tuning::kMostRowsOfMatrix); ++rows)
      if (cost(rows) <= cost(best)) best = rows;
    return best;
  }

  // Enough tasks, of which each has its panel and a block's sums in half of L2; the sums in L1, unless weights that
  // leave L2 would come again and again for them.
  std::int64_t row_blocks(int q, int p, std::int64_t images) const {
    const Window columns = window_of(q), rows = window_of(p);
    const std::int64_t sums = extent(q) * s_.block() * bytes(DType::f32),
                       row = columns.in * extent(c_last()) * bytes(DType::bf16) * rows.stride + sums,
                       weights = c_.terms() * extent(vector_) * bytes(DType::bf16);
    const auto blocks = [&](std::int64_t of_row, std::int64_t most) {
      return extent(p) * of_row / std::max<std::int64_t>(1, most) + 1;
    };
    std::int64_t wanted = ir::ceil_divide(std::min(target_.tasks, tuning::kTasksOfPanels), images);
    wanted = std::max(wanted, blocks(row, target_.l2_bytes / 2));
    if (weights <= target_.l2_bytes / 2) wanted = std::max(wanted, blocks(sums, target_.l1_bytes));
    return std::min(extent(p), wanted);
  }
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
    share_out(extent(n), makes_runs ? 2 : 2 * ir::kTilePairs, extent(channel), extent(outputs), product(taps));
    if (!take_run(n, q, makes_runs)) return std::nullopt;

    if (images_ < extent(n)) add(s_.tasks, name(n), images_ == s_.held(name(n)) ? 0 : images_);
    if (outputs_ < extent(outputs)) add(s_.tasks, name(outputs), outputs_ == s_.block() ? 0 : outputs_);
    if (channels_ < extent(channel)) add(s_.tasks, name(channel), channels_);
    const std::int64_t at_once = rows_at_once(p, q);
    if (at_once < extent(p)) add(s_.outer, name(p), at_once == 1 ? 0 : at_once);
    s_.panel_a = s_.panel_b = at_once < extent(p) ? name(p) : Schedule::kTask;
    if (outputs_ > s_.block()) add(s_.outer, name(outputs));
    for (const int d : taps) add_if_any(s_.outer, d);
    if (channels_ > rows) add(s_.outer, name(channel));
    if (at_once > 1) add(s_.inner, name(p));
    if (extent(q) > s_.held(name(q))) add(s_.inner, name(q));
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

  // Images first, whose parts copy nothing twice, as long as the sums of all parts are few; then outputs, for each share
  // of which all channels are copied again, down to so many; then channels.
  void share_out(std::int64_t images, std::int64_t least_images, std::int64_t channels, std::int64_t outputs,
                 std::int64_t taps) {
    const std::int64_t weights = channels * outputs * taps * bytes(DType::f32), wanted = tuning::kTasksOfSums;
    images_ = images, channels_ = channels, outputs_ = outputs;
    const auto tasks = [&] { return images / images_ * (channels / channels_) * (outputs / outputs_); };
    const auto halve = [](std::int64_t& size, std::int64_t unit) {
      if (size % (2 * unit) != 0) return false;
      size /= 2;
      return true;
    };
    for (std::int64_t fewer = images - 2; fewer >= least_images && tasks() < wanted; fewer -= 2)
      if (images % fewer == 0 && images / fewer * weights <= target_.l2_bytes) images_ = fewer;
    const std::int64_t most = std::max<std::int64_t>(1, target_.l2_bytes / tuning::kSumsOfTaskInL2);
    const auto is_enough = [&] {
      return tasks() >= wanted && channels_ * outputs_ * taps * bytes(DType::f32) <= most;
    };
    while (!is_enough() && outputs_ > tuning::kOutputsOfMatrix && halve(outputs_, s_.block())) {}
    while (!is_enough() && channels_ > tuning::kChannelsOfMatrix && halve(channels_, s_.tile[0].count)) {}
    while (!is_enough() && halve(outputs_, s_.block())) {}
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

  // Whose panels L2 keeps beside the sums.
  std::int64_t rows_at_once(int p, int q) const {
    const Window rows = window_of(p), columns = window_of(q);
    const std::int64_t pairs = images_ / 2 * bytes(DType::u32), a = 2 * columns.in * channels_ * pairs * rows.stride,
                       b = extent(q) * outputs_ * pairs, around = rows.other < 0 ? 0 : extent(rows.other) - 1,
                       most = target_.l2_bytes / 2;
    std::int64_t best = 1;
    for (std::int64_t count = 1; count <= extent(p); ++count)
      if (extent(p) % count == 0 && (count + around) * a + count * b <= most) best = count;
    return best;
  }

  std::int64_t images_ = 1, channels_ = 1, outputs_ = 1;  // of a task
};

}  // namespace

std::optional<Schedule> x86_matrix(const ir::Contraction& contraction, const Target& target, const FusedWork& fused) {
  if (!multiplies(contraction, target, fused)) return std::nullopt;
  return contraction.b.weights ? RowsOfPixels(contraction, target, fused).run()
                               : RowsOfChannels(contraction, target, fused).run();
}

}  // namespace fusejit::scheduler
