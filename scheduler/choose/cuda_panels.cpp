// CUDA, where an operand is computed: a block's threads copy both operands to shared memory, panel by panel, so that
// each element is computed once a block, and multiply from there (scheduler/schedule/shared_panels.h).
#include <algorithm>
#include <functional>

#include "scheduler/choose/roles.h"
#include "scheduler/choose/tuning.h"
#include "scheduler/lower/cuda/threads.h"
#include "scheduler/lower/split.h"
#include "scheduler/schedule/shared_panels.h"

namespace fusejit::scheduler {
namespace {

using cuda::floor_power_of_two;

class PanelChooser {
 public:
  PanelChooser(const ir::Contraction& c, const FusedWork& fused) : c_(c), fused_(fused), roles_(roles_of(c)) {}

  std::optional<Schedule> run() {
    const std::vector<int> rows = above_one(roles_.pixels), groups = above_one(roles_.groups);
    if (rows.empty() || c_.terms() == 0 || c_.outputs() == 0 || runs_along_groups(roles_, c_)) return std::nullopt;
    const bool of_weights = !c_.b.weights;
    if (of_weights && !groups.empty()) return std::nullopt;
    std::vector<int> terms = above_one(roles_.sums);
    std::vector<int> around;
    if (!of_weights) {
      const std::vector<int> channels = above_one(by_window(roles_.sums, roles_.pixels, c_).others);
      if (channels.empty()) return std::nullopt;
      const auto last = std::find(terms.begin(), terms.end(), channels.back());
      around = terms, terms = {*last};
      around.erase(std::find(around.begin(), around.end(), terms[0]));
    }
    if (terms.empty()) return std::nullopt;

    s_.vector = name(roles_.outputs), s_.lanes = static_cast<int>(fused_.lanes);
    const std::int64_t vectors = ir::ceil_divide(extent(roles_.outputs), fused_.lanes);
    const std::int64_t most = fused_.lanes == 1 ? 2 * tuning::kVectorsOfBlock : tuning::kVectorsOfBlock;
    const bool adjoin = roles_.adjoin && !groups.empty();  // no group ends with idle lanes
    const std::int64_t output_threads = adjoin ? divisor_up_to(vectors, most) : std::min(vectors, most);
    const std::int64_t output_blocks = ir::ceil_divide(vectors, output_threads) * combinations_of(c_, groups);
    std::int64_t held = std::min(tuning::kMostPixelsOfThread, tuning::kMostValuesOfThread / fused_.lanes);
    if (fused_.sums) held -= std::min<std::int64_t>(fused_.elements_read * 3 / 4, 3);
    const std::int64_t all_rows = combinations_of(c_, rows);
    held = std::min(held, all_rows);
    std::int64_t row_threads = floor_power_of_two(std::max<std::int64_t>(1, tuning::kThreadsOfTiles / output_threads));
    const auto row_blocks = [&] { return ir::ceil_divide(all_rows, held * row_threads); };
    while (row_threads > 1 && held * (row_threads / 2) >= all_rows) row_threads /= 2;
    if (!of_weights)
      while (row_threads > 2 && row_blocks() * output_blocks < tuning::kFewBlocks) row_threads /= 2;

    const std::int64_t at_once = std::min(combinations_of(c_, terms), tuning::kTermsOfPanel);
    s_.tile = {{names(rows), held}};
    s_.unroll = {{names(terms), at_once}};
    const std::int64_t part = of_weights ? terms_of_part(combinations_of(c_, terms), row_blocks() * output_blocks) : 0;
    if (part > 0) s_.tasks.push_back({names(terms), part, 0, ir::Binding::grid_z});
    if (!groups.empty()) s_.tasks.push_back({names(groups), 0, 0, ir::Binding::grid_z});
    if (vectors > output_threads)
      s_.tasks.push_back({{s_.vector}, output_threads * fused_.lanes, 0, ir::Binding::grid_y});
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
    if (c_.b.weights && !fused_.computes_b && !fused_.b_lies_by_outputs) s_.pack_b = output_threads * fused_.lanes;
    s_.registers = tuning::kRegistersOfTile;
    if (!check_shared_panels(c_, s_, fused_.sums).empty()) return std::nullopt;
    return s_;
  }

 private:
  const std::string& name(int d) const { return c_.dims[static_cast<std::size_t>(d)].name; }
  std::int64_t extent(int d) const { return c_.dims[static_cast<std::size_t>(d)].extent; }
  std::vector<std::string> names(const std::vector<int>& dims) const {
    std::vector<std::string> list;
    for (const int d : dims) list.push_back(name(d));
    return list;
  }
  std::vector<int> above_one(const std::vector<int>& dims) const {
    std::vector<int> kept;
    std::copy_if(dims.begin(), dims.end(), std::back_inserter(kept), [&](int d) { return extent(d) > 1; });
    return kept;
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

}  // namespace

std::optional<Schedule> cuda_shared_panels(const ir::Contraction& contraction, const FusedWork& fused) {
  if (fused.library || !(fused.computes_a || fused.computes_b)) return std::nullopt;
  return PanelChooser(contraction, fused).run();
}

}  // namespace fusejit::scheduler
