#include "scheduler/schedule/check_winograd.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>

#include "ir/ops/geometry/window.h"
#include "scheduler/schedule/winograd.h"

namespace fusejit::scheduler {
namespace {

constexpr std::int64_t kMostScratch = std::int64_t{15} << 20;  // of the 16 MiB of a task (kernel-ir.md, V5)

// What one turn of a loop has of its dim.
std::int64_t step_of(const ir::Contraction& c, const Schedule& s, const WinogradDims& dims, const ScheduledLoop& loop) {
  const int d = c.find(loop.dims[0]);
  const std::int64_t least = d == dims.p ? s.winograd : d == dims.k ? s.block() : 1;
  return loop.step > 0 ? loop.step : least;
}

std::string check_tasks(const ir::Contraction& c, const Schedule& s, const WinogradDims& dims) {
  std::set<std::string> seen;
  for (const ScheduledLoop& loop : s.tasks) {
    if (loop.dims.size() > 1)
      return fmt::format("Winograd's tasks are loops over single dims, not {}", fmt::join(loop.dims, "*"));
    const std::string& name = loop.dims[0];
    const int d = c.find(name);
    if (d != dims.n && d != dims.p && d != dims.k)
      return fmt::format("Winograd's tasks share out images, rows and outputs, not {}", name);
    if (!seen.insert(name).second)
      return fmt::format("Winograd's tasks are cut once along a dim, not again along {}", name);
    if (loop.stride > 0) return "threads share inner loops of a device, not of Winograd";
    if (d == dims.p && loop.step % s.winograd != 0)
      return fmt::format("{} rows of results are no patches of {}", loop.step, s.winograd);
    if (d == dims.k && loop.step % s.block() != 0)
      return fmt::format("tasks of {} {} are no multiple of the {} in registers", loop.step, name, s.block());
  }
  return "";
}

}  // namespace

std::int64_t winograd_scratch(const ir::Contraction& c, const Schedule& s) {
  const WinogradDims dims = *winograd_dims(c);
  const auto extent = [&](int d) { return d < 0 ? 1 : c.dims[static_cast<std::size_t>(d)].extent; };
  std::int64_t images = extent(dims.n), rows = extent(dims.p);
  for (const ScheduledLoop& loop : s.tasks) {
    if (c.find(loop.dims[0]) == dims.n) images = std::min(images, step_of(c, s, dims, loop));
    if (c.find(loop.dims[0]) == dims.p) rows = std::min(rows, step_of(c, s, dims, loop));
  }
  const std::int64_t patches = images * ir::ceil_divide(rows, s.winograd) * ir::ceil_divide(extent(dims.q), s.winograd);
  const std::int64_t channels = ir::ceil_divide<std::int64_t>(extent(dims.c), s.lanes) * s.lanes;
  return kWinogradPoints * kWinogradPoints * patches * (channels + s.block()) * bytes(DType::f32);
}

std::string check_winograd(const ir::Contraction& c, const Schedule& s) {
  const std::optional<WinogradDims> dims = winograd_dims(c);
  if (!dims)
    return fmt::format("Winograd computes windows of 3 x 3 neighbouring taps, stride 1, without groups, and not {}",
                       str(c));
  if (s.winograd != kWinogradResults)
    return fmt::format("Winograd's patches are {} x {}, not {}", kWinogradResults, kWinogradResults, s.winograd);
  if (c.a.dtype != DType::f32 || c.b.dtype != DType::f32)
    return fmt::format("Winograd is for f32, not for {} and {}", name(c.a.dtype), name(c.b.dtype));
  if (s.by_threads()) return "Winograd is for processors";
  const auto name_of = [&](int d) { return c.dims[static_cast<std::size_t>(d)].name; };
  if (c.find(s.vector) != dims->k)
    return fmt::format("Winograd's lanes run along {}, not {}", name_of(dims->k), s.vector);
  std::vector<std::string> patches;
  for (const int d : {dims->n, dims->p, dims->q})
    if (d >= 0) patches.push_back(name_of(d));
  if (s.tile.size() > 1 || (s.tile.size() == 1 && s.tile[0].dims != patches))
    return fmt::format("Winograd's tile is one of patches: {} 14", fmt::join(patches, "*"));
  for (const Extent& extent : s.unroll)
    if (extent.dims != std::vector{name_of(dims->c)}) return fmt::format("Winograd unrolls {} alone", name_of(dims->c));
  if (s.unroll_within || !s.dot.empty() || !s.outer.empty() || !s.inner.empty() || !s.panel_a.empty() ||
      !s.panel_b.empty() || !s.combine.empty() || !s.flush.dims.empty() || !s.fetch.dims.empty())
    return "a schedule of Winograd says algorithm, vector, tile, unroll, task, pack and store; its other loops are "
           "fixed";
  if (std::string broken = check_tasks(c, s, *dims); !broken.empty()) return broken;
  if (s.pack_b != s.block())
    return fmt::format("Winograd reads weights in blocks of the {} outputs in registers, not {}", s.block(), s.pack_b);
  if (c.outputs() == 0 || c.terms() == 0) return "Winograd needs elements";
  if (const std::int64_t scratch = winograd_scratch(c, s); scratch > kMostScratch)
    return fmt::format("Winograd's copies take {} bytes a task; at most {}", scratch, kMostScratch);
  return "";
}

}  // namespace fusejit::scheduler
