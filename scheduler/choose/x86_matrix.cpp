// Contractions with weights in bf16 where there is a matrix unit (AMX): rows of tiles are pixels side by side in a
// panel of what a task reads, columns are outputs.
#include <algorithm>
#include <optional>

#include "ir/kernel/tile_nest.h"
#include "scheduler/choose/x86_chooser.h"
#include "scheduler/lower/split.h"

namespace fusejit::scheduler {
namespace {

class TilesOfMatrix : X86Chooser {
 public:
  using X86Chooser::X86Chooser;

  std::optional<Schedule> run() {
    if (!multiplies() || roles_.pixels.empty() || roles_.sums.empty()) return std::nullopt;
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
  bool multiplies() const {
    const auto is_narrow = [](const ir::ContractionOperand& operand) { return operand.dtype == DType::bf16; };
    return target_.isa == Isa::x86_amx && is_narrow(c_.a) && is_narrow(c_.b) && fused_.compute == DType::f32 &&
           c_.b.weights && !along_groups_ && product(roles_.groups) == 1 && c_.outputs() > 0 && c_.terms() > 0 &&
           s_.lanes == ir::kTileColumns;
  }

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

}  // namespace

std::optional<Schedule> x86_matrix(const ir::Contraction& contraction, const Target& target, const FusedWork& fused) {
  return TilesOfMatrix(contraction, target, fused).run();
}

}  // namespace fusejit::scheduler
