#include "scheduler/schedule/check_matrix.h"

#include <fmt/format.h>

#include <algorithm>

#include "ir/kernel/tile_nest.h"
#include "ir/ops/geometry/window.h"

namespace fusejit::scheduler {
namespace {

// The sums of a task's block of outputs and its panel are in scratch, of which a task has 16 MiB.
constexpr std::int64_t kMostSums = std::int64_t{8} << 20;

}  // namespace

std::string check_matrix(const ir::Contraction& c, const Schedule& s, const Target& target) {
  if (target.isa != Isa::x86_amx) return fmt::format("there is no matrix unit on {}", name(target.isa));
  if (s.dot.empty()) return "a row of a matrix unit has terms of dot";
  const std::int64_t terms = c.dim(s.dot).extent, most = 2 * ir::kTilePairs;
  if (s.matrix % 2 != 0 || s.matrix < 4 || s.matrix > most || terms % s.matrix != 0)
    return fmt::format("a row of a matrix unit has 4 to {} terms, an even number that divides the {} of {}, not {}",
                       most, terms, s.dot, s.matrix);
  if (s.panel_a.empty() || s.pack_b != s.block() || s.lanes != ir::kTileColumns)
    return fmt::format(
        "a matrix unit multiplies a panel of a with packed blocks of {} outputs, as they are in registers",
        ir::kTileColumns);
  if (c.a.mentions(c.find(s.vector)))
    return fmt::format("a matrix unit multiplies every element of a with all outputs, and a has {} too", s.vector);
  if (s.tile.size() != 1 || s.tile[0].dims.size() != 1) return "the rows of a matrix unit are a tile along one dim";
  const std::int64_t rows = s.tile[0].count, extent = c.dim(s.tile[0].dims[0]).extent;
  for (const std::int64_t size : {rows, extent % rows})
    if (size > 0 && size % ir::tiles_of_rows(size) != 0)
      return fmt::format("{} rows are not {} equal tiles of a matrix unit", size, ir::tiles_of_rows(size));
  if (s.unroll.size() != 1 || s.unroll[0].dims != std::vector{s.dot} || s.unroll[0].count != s.matrix ||
      s.unroll_within)
    return fmt::format("a matrix unit takes {} {} together, and nothing else is unrolled", s.matrix, s.dot);
  if (s.tiles_a || !s.combine.empty() || !s.flush.dims.empty() || !s.fetch.dims.empty())
    return "products in a matrix unit have no tiles in their panel, no combine, flush or fetch";
  std::int64_t sums = s.block() * bytes(DType::f32);
  for (const ir::ContractionDim& d : c.dims) {
    if (d.reduced) {
      const auto loops = std::count_if(s.inner.begin(), s.inner.end(), [&](const ScheduledLoop& loop) {
        return loop.dims == std::vector{d.name} && loop.step == 0 && loop.stride == 0;
      });
      if (loops != (d.extent == (d.name == s.dot ? s.matrix : 1) ? loops : 1))
        return fmt::format("a matrix unit adds up all of {} in one loop", d.name);
    } else if (d.name != s.vector) {
      std::int64_t left = d.extent;
      for (const auto* list : {&s.tasks, &s.outer})
        for (const ScheduledLoop& loop : *list)
          if (std::find(loop.dims.begin(), loop.dims.end(), d.name) != loop.dims.end())
            left = loop.dims.size() > 1 || loop.step == 0 ? s.held(d.name) : std::min(left, loop.step);
      sums *= std::min(left, d.extent);
    }
  }
  for (const ScheduledLoop& loop : s.inner)
    if (loop.dims.size() > 1) return "loops inside of a matrix unit's block are over single dims";
  if (sums > kMostSums) return fmt::format("sums of {} bytes in a task; at most {}", sums, kMostSums);
  return "";
}

}  // namespace fusejit::scheduler
