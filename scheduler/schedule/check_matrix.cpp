#include "scheduler/schedule/check_matrix.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "ir/kernel/tile_nest.h"
#include "ir/ops/geometry/window.h"

namespace fusejit::scheduler {
namespace {

// The sums of a task's block of outputs and its panels are in scratch, of which a task has 16 MiB.
constexpr std::int64_t kMostSums = std::int64_t{8} << 20;

class MatrixCheck {
 public:
  MatrixCheck(const ir::Contraction& c, const Schedule& s, const Target& target) : c_(c), s_(s), target_(target) {}

  std::string run() {
    for (const auto step : {&MatrixCheck::unit, &MatrixCheck::rows, &MatrixCheck::loops})
      if (std::string broken = (this->*step)(); !broken.empty()) return broken;
    return s_.combine.empty() ? of_pixels() : of_weights();
  }

 private:
  std::string unit() {
    constexpr std::int64_t kMost = 2 * ir::kTilePairs;
    if (target_.isa != Isa::x86_amx) return fmt::format("there is no matrix unit on {}", name(target_.isa));
    if (s_.dot.empty()) return "a row of a matrix unit has terms of dot";
    if (s_.matrix % 2 != 0 || s_.matrix < 4 || s_.matrix > kMost)
      return fmt::format("a row of a matrix unit has 4 to {} terms, an even number, not {}", kMost, s_.matrix);
    if (s_.lanes != ir::kTileColumns) return fmt::format("a matrix unit has {} outputs at a time", ir::kTileColumns);
    if (s_.panel_a.empty() && (!s_.combine.empty() || c_.a.has_windows(c_.dims)))
      return "a matrix unit multiplies a panel of a, unless that has single taps and no padding";
    if (c_.a.mentions(c_.find(s_.vector)))
      return fmt::format("a matrix unit multiplies every element of a with all outputs, and a has {} too", s_.vector);
    if (s_.tiles_a || !s_.flush.dims.empty() || !s_.fetch.dims.empty() || s_.unroll_within)
      return "products in a matrix unit have no tiles in their panel, no within, flush or fetch";
    return "";
  }

  std::string rows() {
    if (s_.tile.empty() || s_.tile.size() > 2 || s_.tile[0].dims.size() != 1)
      return "the rows of a matrix unit are a tile along one dim, or along two";
    if (s_.tile[0].count * s_.tile.back().count < 2) return "a tile of a matrix unit has two rows at least";
    return s_.tile.size() == 2 ? rows_of_two_dims() : "";
  }

  // Several rows of an image, each whole.
  std::string rows_of_two_dims() {
    const int rows = c_.find(s_.tile[0].dims[0]), pixels = c_.find(s_.tile[1].dims[0]);
    if (s_.tile[1].dims.size() != 1 || rows + 1 != pixels || is_cut(s_.tile[1].dims[0]) ||
        s_.tile[1].count != c_.dim(s_.tile[1].dims[0]).extent || !s_.combine.empty())
      return fmt::format("rows of a matrix unit along {} and {} are not several whole rows of pixels",
                         s_.tile[0].dims[0], s_.tile[1].dims[0]);
    return "";
  }

  // All terms are looped over inside of the block of sums, which scratch holds.
  std::string loops() {
    for (const ScheduledLoop& loop : s_.inner)
      if (loop.dims.size() > 1 || loop.step > 0)
        return "loops inside of a matrix unit's block are over all that is left of single dims";
    for (const auto* list : {&s_.tasks, &s_.outer})
      for (const ScheduledLoop& loop : *list)
        for (const std::string& dim : loop.dims)
          if (c_.dim(dim).reduced &&
              (loop.dims.size() > 1 || c_.dim(dim).extent % std::max(loop.step, s_.held(dim)) != 0))
            return fmt::format("{} is cut into parts of one size for a matrix unit, by itself", dim);
    std::int64_t sums = s_.block() * bytes(DType::f32);
    for (const ir::ContractionDim& d : c_.dims) {
      const std::int64_t held = s_.held(d.name);
      std::int64_t left = left_of(d.name);
      if (!d.reduced) {
        if (d.name != s_.vector) sums *= left;
        continue;
      }
      if (d.name == s_.dot && s_.combine.empty()) left += left % 2;  // the last pair may end with zeros
      const auto loops = std::count_if(s_.inner.begin(), s_.inner.end(),
                                       [&](const ScheduledLoop& loop) { return loop.dims[0] == d.name; });
      if (left % held != 0 || (left > held && loops != 1))
        return fmt::format("a matrix unit adds up all of {} in one loop, {} at a time", d.name, held);
    }
    return sums > kMostSums ? fmt::format("sums of {} bytes in a task; at most {}", sums, kMostSums) : "";
  }

  // The second operand is packed, pairs of its last dim in rows of outputs.
  std::string of_pixels() {
    if (s_.pack_b != s_.block())
      return fmt::format("a matrix unit reads packed blocks of the {} outputs that are at hand", s_.block());
    if (s_.merges_taps()) return run_of_taps();
    if (s_.unroll.size() != 1 || s_.unroll[0].dims != std::vector{s_.dot} || s_.unroll[0].count != s_.matrix)
      return fmt::format("a matrix unit takes {} {} together, and nothing else is unrolled", s_.matrix, s_.dot);
    return "";
  }

  // Neighbouring taps of a window and all channels of each: the panel has the channels of neighbouring pixels side by
  // side, in whole rows, and the packed operand those of neighbouring taps.
  std::string run_of_taps() const {
    std::vector<std::string> terms;
    for (const ir::ContractionDim& d : c_.dims)
      if (d.reduced) terms.push_back(d.name);
    const Extent &taps = s_.unroll[0], &channels = s_.unroll[1];
    const bool are_last = terms.size() >= 2 && taps.dims == std::vector{terms[terms.size() - 2]} &&
                          channels.dims == std::vector{terms.back()} && terms.back() == s_.dot;
    if (!are_last || channels.count < c_.dim(s_.dot).extent || taps.count * channels.count != s_.matrix)
      return fmt::format("a matrix unit takes {} {} together, or all of it for a few of the dim before", s_.matrix,
                         s_.dot);
    if (s_.lanes % (channels.count / 2) != 0)
      return fmt::format("pairs of {} {} do not fill vectors of {} lanes", channels.count, s_.dot, s_.lanes);
    const int along = c_.find(taps.dims[0]);
    for (const ir::DimSum& sum : c_.a.index) {
      if (sum.coefficient_of(c_.find(s_.dot)) != 0 && (sum.terms.size() > 1 || sum.constant != 0))
        return fmt::format("{} is no index of its own, so a pixel's do not lie side by side", s_.dot);
      const std::int64_t step = sum.coefficient_of(along);
      if (step == 0) continue;
      if (step != 1) return fmt::format("{} moves by {}, so its elements are no run", taps.dims[0], step);
      for (const ir::DimSum::Term& term : sum.terms)
        if (const std::string& name = c_.dims[static_cast<std::size_t>(term.dim)].name; is_cut(name))
          return fmt::format("a panel for runs of {} has whole rows, and {} is cut", taps.dims[0], name);
    }
    return "";
  }

  // Both are panels of pairs, in which those of neighbouring elements of one dim are a run.
  std::string of_weights() {
    if (s_.panel_b.empty() || c_.dim(s_.vector).extent % s_.block() != 0)
      return fmt::format("partial results of a matrix unit are of a panel of b, in whole blocks of {}", s_.block());
    const std::string& channel = s_.tile[0].dims[0];
    if (left_of(channel) % ir::kTileRows != 0 || left_of(channel) % s_.tile[0].count != 0)
      return fmt::format("the {} {} of a task are no whole tiles of a matrix unit", left_of(channel), channel);
    std::int64_t run = 1;
    for (const Extent& held : s_.unroll) run *= held.count;
    if (s_.unroll.empty() || s_.unroll.back().dims != std::vector{s_.dot} || run != s_.matrix)
      return fmt::format("a matrix unit takes {} terms together, the last of {}", s_.matrix, s_.dot);
    const std::optional<std::string> along = run_of_pixels();
    if (!along) return fmt::format("pairs of {} lie between channels and single elements of a row", s_.dot);
    if (s_.unroll.size() == 1) return "";
    if (s_.unroll.size() > 2 || s_.unroll[0].dims != std::vector{*along} || s_.held(s_.dot) != left_of(s_.dot))
      return fmt::format("a run of a matrix unit is of all {} of some {}", s_.dot, *along);
    // Of single taps a panel has those pixels alone that are read.
    for (const ir::ContractionOperand* operand : {&c_.a, &c_.b})
      for (std::size_t d = 0; d < operand->index.size(); ++d)
        if (const std::int64_t step = operand->index[d].coefficient_of(c_.find(*along));
            step > 1 && operand->is_window(static_cast<int>(d), c_.dims))
          return fmt::format("{} moves by {}, so its elements are no run", *along, step);
    return "";
  }

  // The dim whose elements follow each other in a row of both operands, before the channels, which are innermost in
  // memory: the last that is summed up, the terms of dot apart.
  std::optional<std::string> run_of_pixels() const {
    std::optional<std::string> last;
    for (const ir::ContractionDim& d : c_.dims)
      if (d.reduced && d.name != s_.dot) last = d.name;
    return c_.a.index.size() >= 3 ? last : std::nullopt;
  }

  bool is_cut(const std::string& dim) const {
    return std::any_of(s_.tasks.begin(), s_.tasks.end(), [&](const ScheduledLoop& loop) { return names(loop, dim); }) ||
           std::any_of(s_.outer.begin(), s_.outer.end(), [&](const ScheduledLoop& loop) { return names(loop, dim); });
  }
  static bool names(const ScheduledLoop& loop, const std::string& dim) {
    return std::find(loop.dims.begin(), loop.dims.end(), dim) != loop.dims.end();
  }
  // Of a dim, in a task and inside of the outer loops.
  std::int64_t left_of(const std::string& dim) const {
    std::int64_t left = c_.dim(dim).extent;
    for (const auto* list : {&s_.tasks, &s_.outer})
      for (const ScheduledLoop& loop : *list)
        if (names(loop, dim)) {
          const bool whole = loop.dims.size() == 1 && loop.step > 0;
          if (whole) left = std::min(left, loop.step);
          if (!whole && dim != s_.tile[0].dims[0]) left = s_.held(dim);  // loops over tiles leave a panel's rows
        }
    return left;
  }

  const ir::Contraction& c_;
  const Schedule& s_;
  const Target& target_;
};

}  // namespace

std::string check_matrix(const ir::Contraction& c, const Schedule& s, const Target& target) {
  return MatrixCheck(c, s, target).run();
}

}  // namespace fusejit::scheduler
