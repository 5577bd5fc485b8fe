// CUDA without a library: a block's threads copy both operands to shared memory, panel by panel, and multiply from
// there (scheduler/schedule/shared_panels.h). What is computed is computed once a block and tap then; what is in memory
// is read in large pieces, and by a fraction of the instructions that reading it for each tile takes.
#include <algorithm>
#include <functional>

#include "scheduler/choose/roles.h"
#include "scheduler/choose/tuning.h"
#include "scheduler/lower/cuda/threads.h"
#include "scheduler/lower/long_sum.h"
#include "scheduler/lower/split.h"
#include "scheduler/schedule/dims.h"
#include "scheduler/schedule/shared_panels.h"

namespace fusejit::scheduler {
namespace {

using cuda::floor_power_of_two;

class PanelChooser {
 public:
  PanelChooser(const ir::Contraction& c, const FusedWork& fused) : c_(c), fused_(fused), roles_(roles_of(c)) {}

  std::optional<Schedule> run() {
    const std::vector<int> rows = above_one(c_, roles_.pixels), groups = above_one(c_, roles_.groups);
    if (rows.empty() || c_.terms() == 0 || c_.outputs() == 0 || runs_along_groups(roles_, c_)) return std::nullopt;
    const bool of_weights = !c_.b.weights;
    if (of_weights && !groups.empty()) return std::nullopt;
    std::vector<int> terms = above_one(c_, roles_.sums);
    std::vector<int> around;
    if (!of_weights) {
      const std::vector<int> channels = above_one(c_, by_window(roles_.sums, roles_.pixels, c_).others);
      if (channels.empty()) return std::nullopt;
      const auto last = std::find(terms.begin(), terms.end(), channels.back());
      around = terms, terms = {*last};
      around.erase(std::find(around.begin(), around.end(), terms[0]));
    }
    if (terms.empty() || extent(roles_.outputs) < tuning::kLeastOutputsOfPanel) return std::nullopt;
    // A long chain of f32 sums goes to f64 now and then, which panels do not.
    if (!of_weights && around.empty() && is_long_sum(combinations_of(c_, terms) / tuning::kLongProduct, fused_.compute))
      return std::nullopt;

    s_.vector = name(roles_.outputs), s_.lanes = static_cast<int>(fused_.lanes);
    // A group ends with no idle lanes.
    const Block block =
        block_of(combinations_of(c_, rows), combinations_of(c_, groups), roles_.adjoin && !groups.empty());
    const std::int64_t held = block.held, row_threads = block.row_threads;
    s_.vectors = block.vectors;
    const std::int64_t outputs = block.output_threads * s_.block();

    const std::int64_t at_once = std::min(combinations_of(c_, terms), tuning::kTermsOfPanel);
    s_.tile = {{names(rows), held}};
    s_.unroll = {{names(terms), at_once}};
    const std::int64_t part = of_weights ? terms_of_part(combinations_of(c_, terms), block.blocks) : 0;
    if (part > 0) s_.tasks.push_back({names(terms), part, 0, ir::Binding::grid_z});
    if (!groups.empty()) s_.tasks.push_back({names(groups), 0, 0, ir::Binding::grid_z});
    if (extent(roles_.outputs) > outputs) s_.tasks.push_back({{s_.vector}, outputs, 0, ir::Binding::grid_y});
    s_.tasks.push_back({names(rows), held * row_threads, 0, ir::Binding::grid_x});
    // Rows of pixels whose channels lie side by side are read from different banks if they are neighbours; weights'
    // channels lie side by side themselves.
    const bool strides = row_threads > 1 && !of_weights;
    if (row_threads > 1 && !strides) s_.tasks.push_back({names(rows), held, 0, ir::Binding::block_y});
    s_.tasks.push_back({{s_.vector}, 0, 0, ir::Binding::block_x});
    if (strides || fused_.sums) {
      s_.inner.push_back({names(rows), 0, row_threads, ir::Binding::block_y});
      s_.inner.push_back({names(rows)});
    }
    for (const int d : around) s_.inner.push_back({{name(d)}});
    s_.inner.push_back({names(terms)});
    s_.panel_a = s_.panel_b = name(terms.back());
    if (part > 0) {
      s_.combine = names(rows);
      s_.combine.push_back(s_.vector);
    }
    if (c_.b.weights && !fused_.b_lies_by_outputs && !lies_by_terms(terms.back())) s_.pack_b = outputs;
    s_.registers = is_f64() ? tuning::kRegistersOfWideFunctions : tuning::kRegistersOfTile;
    if (!check_shared_panels(c_, s_, fused_.sums).empty()) return std::nullopt;
    return s_;
  }

 private:
  const std::string& name(int d) const { return dim_of(c_, d).name; }
  std::vector<std::string> names(const std::vector<int>& dims) const { return names_of(c_, dims); }
  std::int64_t extent(int d) const { return dim_of(c_, d).extent; }

  // Weights whose terms lie side by side in memory are read there, as single taps': a row of a panel is a piece of
  // each.
  bool lies_by_terms(int d) const {
    if (fused_.innermost_of_b < 0 || fused_.computes_b) return false;
    return is_dim(c_.b.index[static_cast<std::size_t>(fused_.innermost_of_b)], d);
  }

  bool is_f64() const { return fused_.compute == DType::f64; }

  // What threads compute together. The more of it, the less is copied for each product; but multiprocessors should not
  // be idle.
  struct Block {
    std::int64_t held = 1, row_threads = 1, output_threads = 1;
    int vectors = 1;
    std::int64_t blocks = 1;  // in all
  };
  Block block_of(std::int64_t rows, std::int64_t groups, bool whole_groups) const {
    const std::int64_t all = ir::ceil_divide(extent(roles_.outputs), fused_.lanes);
    const std::int64_t most = fused_.lanes == 1 ? 2 * tuning::kVectorsOfBlock : tuning::kVectorsOfBlock;
    const std::int64_t output_threads = whole_groups ? divisor_up_to(all, most) : std::min(all, most);
    std::int64_t held = std::min(tuning::kMostPixelsOfThread, tuning::kMostValuesOfThread / fused_.lanes);
    // Loads of an epilogue are all in flight, beside its sums.
    if (fused_.sums) held -= held * std::min<std::int64_t>(fused_.elements_read * 3 / 4, 3) / 8;
    while (held > 1 && ir::ceil_divide(rows, held) * output_threads < tuning::kLeastThreadsOfPanel) held /= 2;
    const auto threads_for = [&](std::int64_t threads) {
      const std::int64_t row_threads = std::min(threads / output_threads, tuning::kMostRowsOfPanel / held);
      return floor_power_of_two(std::max<std::int64_t>(1, row_threads));
    };
    const auto block = [&](std::int64_t row_threads, int vectors) {
      // Of two vectors and a sum's state in f64 ptxas spilled for the eighth row.
      const std::int64_t of_thread = fused_.sums && vectors > 1 ? std::min<std::int64_t>(held, 7) : held;
      const std::int64_t blocks =
          ir::ceil_divide(rows, of_thread * row_threads) * ir::ceil_divide(all, output_threads * vectors) * groups;
      return Block{of_thread, row_threads, output_threads, vectors, blocks};
    };
    // Nor two vectors beside sums of what an epilogue reads, or of eight lanes.
    for (const int vectors : {2, 1}) {
      if (vectors > 1 && (is_f64() || (fused_.sums && (fused_.elements_read > 0 || fused_.lanes > 4)))) continue;
      const Block large = block(threads_for(2 * tuning::kThreadsOfTiles), vectors);
      const bool fills = all % (output_threads * vectors) == 0 && rows >= large.held * large.row_threads;
      if (fills && large.blocks >= tuning::kFewBlocks) return large;
    }
    std::int64_t row_threads = threads_for(tuning::kThreadsOfTiles);
    while (row_threads > 1 && held * (row_threads / 2) >= rows) row_threads /= 2;
    const bool cut = !c_.b.weights;  // sums are, where blocks are few
    while (!cut && row_threads > 1 && row_threads / 2 * output_threads >= cuda::kWarp &&
           block(row_threads, 1).blocks < tuning::kFewBlocks)
      row_threads /= 2;
    return block(row_threads, 1);
  }

  // Whole panels, in as many parts as keep the device busy, and no chain of f32 sums longer than is good; 0: no part.
  static std::int64_t terms_of_part(std::int64_t terms, std::int64_t blocks) {
    const std::int64_t panels = ir::ceil_divide(terms, tuning::kTermsOfPanel);
    const std::int64_t wanted =
        std::max(ir::ceil_divide(tuning::kBlocksOfParts, blocks), ir::ceil_divide(terms, tuning::kMostTermsOfPart));
    const std::int64_t parts = std::clamp<std::int64_t>(wanted, 1, std::max<std::int64_t>(1, panels / 4));
    const std::int64_t of_part = ir::ceil_divide(panels, parts);
    return of_part >= panels ? 0 : of_part * tuning::kTermsOfPanel;
  }

  const ir::Contraction& c_;
  const FusedWork& fused_;
  const Roles roles_;
  Schedule s_;
};

// Operands that could be read where they are: whole panels, as many threads as a device has room for, and wide
// accesses.
bool is_worth_copying(const ir::Contraction& c, const Schedule& s) {
  const SharedPanels form = shared_panels(c, s);
  const std::int64_t row_blocks = ir::ceil_divide(combinations_of(c, form.rows), form.rows_of_block());
  const std::int64_t outputs = c.dim(s.vector).extent, together = form.output_threads * s.block();
  const std::int64_t parts =
      form.terms_of_part == 0 ? 1 : ir::ceil_divide(combinations_of(c, form.terms), form.terms_of_part);
  const std::int64_t blocks = row_blocks * ir::ceil_divide(outputs, together) * parts * combinations_of(c, form.groups);
  return s.lanes > 1 && form.terms_at_once == tuning::kTermsOfPanel && blocks >= tuning::kFewBlocks &&
         form.row_threads * form.output_threads >= tuning::kThreadsOfTiles;
}

}  // namespace

std::optional<Schedule> cuda_shared_panels(const ir::Contraction& contraction, const FusedWork& fused) {
  if (fused.library) return std::nullopt;
  std::optional<Schedule> chosen = PanelChooser(contraction, fused).run();
  // Weights that are computed are packed by a kernel that computes them.
  const bool computes_b = fused.computes_b && chosen && chosen->pack_b == 0;
  if (fused.computes_a || computes_b || !chosen) return chosen;
  return is_worth_copying(contraction, *chosen) ? chosen : std::nullopt;
}

}  // namespace fusejit::scheduler
