#include "scheduler/schedule/check_winograd.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>

#include "ir/ops/geometry/window.h"
#include "scheduler/schedule/winograd.h"

namespace fusejit::scheduler {
namespace {

class WinogradCheck {
 public:
  WinogradCheck(const ir::Contraction& c, const Schedule& s, const WinogradDims& dims) : c_(c), s_(s), dims_(dims) {}

  std::string run() {
    if (s_.winograd != kWinogradResults)
      return fmt::format("Winograd's patches are {0} x {0}, not {1}", kWinogradResults, s_.winograd);
    if (compute_type(c_.a.dtype) != DType::f32 || compute_type(c_.b.dtype) != DType::f32)
      return fmt::format("Winograd is for f32, f16 and bf16, not for {} and {}", fusejit::name(c_.a.dtype),
                         fusejit::name(c_.b.dtype));
    if (s_.by_threads()) return "Winograd is for processors";
    if (c_.find(s_.vector) != dims_.k)
      return fmt::format("Winograd's lanes run along {}, not {}", name(dims_.k), s_.vector);
    if (c_.outputs() == 0 || c_.terms() == 0) return "Winograd needs elements";
    for (const auto step : {&WinogradCheck::held, &WinogradCheck::lines, &WinogradCheck::loops})
      if (std::string broken = (this->*step)(); !broken.empty()) return broken;
    if (const std::int64_t bytes = scratch(); bytes > kMostWinogradScratch)
      return fmt::format("Winograd's copies take {} bytes a task; at most {}", bytes, kMostWinogradScratch);
    return "";
  }

  // Of what is read and what is summed up, at all points.
  std::int64_t scratch() const {
    const auto whole = [](std::int64_t n, std::int64_t of) { return ir::ceil_divide(n, of) * of; };
    const std::int64_t patches = left(dims_.n) * ir::ceil_divide(left(dims_.p), dims_.down.results()) *
                                 ir::ceil_divide(extent(dims_.q), dims_.across.results()),
                       channels = whole(left(dims_.c), s_.lanes), outputs = whole(left(dims_.k), s_.block());
    const std::int64_t read = patches * (channels + (dims_.of_weights || !s_.outer.empty() ? outputs : s_.block())),
                       summed = dims_.of_weights ? left(dims_.c) * outputs : 0;
    return (dims_.points() * read + dims_.weight_points() * summed) * bytes(DType::f32);
  }

 private:
  std::string name(int d) const { return c_.dims[static_cast<std::size_t>(d)].name; }
  std::int64_t extent(int d) const { return d < 0 ? 1 : c_.dims[static_cast<std::size_t>(d)].extent; }
  std::int64_t least(int d) const { return d == dims_.p ? dims_.down.results() : d == dims_.k ? s_.block() : 1; }
  std::int64_t step(const ScheduledLoop& loop) const {
    return loop.step > 0 ? loop.step : least(c_.find(loop.dims[0]));
  }
  // What all loops over a dim leave of it.
  std::int64_t left(int d) const {
    std::int64_t size = extent(d);
    for (const auto* loops : {&s_.tasks, &s_.outer})
      for (const ScheduledLoop& loop : *loops)
        if (d >= 0 && c_.find(loop.dims[0]) == d) size = std::min(size, step(loop));
    return size;
  }

  std::string held() {
    if (dims_.of_weights) {
      if (s_.tile.size() > 1 || (s_.tile.size() == 1 && s_.tile[0].dims != std::vector{name(dims_.c)}))
        return fmt::format("the tile of Winograd's weights is one of channels: {} 14", name(dims_.c));
      return s_.unroll.empty() ? "" : "Winograd's patches are not unrolled";
    }
    std::vector<std::string> patches;
    for (const int d : {dims_.n, dims_.p, dims_.q})
      if (d >= 0) patches.push_back(name(d));
    if (s_.tile.size() > 1 || (s_.tile.size() == 1 && s_.tile[0].dims != patches))
      return fmt::format("Winograd's tile is one of patches: {} 14", fmt::join(patches, "*"));
    for (const Extent& extent : s_.unroll)
      if (extent.dims != std::vector{name(dims_.c)}) return fmt::format("Winograd unrolls {} alone", name(dims_.c));
    return "";
  }

  std::string lines() {
    if (s_.unroll_within || !s_.dot.empty() || !s_.inner.empty() || !s_.panel_a.empty() || !s_.panel_b.empty() ||
        !s_.flush.dims.empty() || s_.finish_late)
      return "a schedule of Winograd has no within, dot, inner, panel, flush or finish: those loops are fixed";
    if (!s_.fetch.dims.empty() &&
        (s_.fetch_b || s_.fetch.dims != std::vector{name(dims_.q)} || s_.fetch.count % dims_.across.results() != 0))
      return fmt::format("Winograd fetches what patches read further along {}: {} {}, not {} {}", name(dims_.q),
                         name(dims_.q), dims_.across.results(), fmt::join(s_.fetch.dims, "*"), s_.fetch.count);
    if (dims_.of_weights) {
      if (s_.fetch_packed) return "Winograd's weights pack nothing that could be fetched";
      if (s_.pack_b > 0 || s_.stream) return "Winograd's weights pack nothing, and combine what they store";
      for (const std::string& along : s_.combine)
        if (along == name(dims_.k)
                ? s_.combine.size() > 1
                : c_.dim(along).reduced || std::count(s_.combine.begin(), s_.combine.end(), along) > 1)
          return fmt::format(
              "Winograd's weights are combined with lanes along {}, or along other dims of theirs, not {}",
              name(dims_.k), fmt::join(s_.combine, "*"));
      return s_.combine.empty() ? "Winograd's weights are combined from parts" : "";
    }
    if (!s_.combine.empty()) return "Winograd's results are not combined";
    if (s_.pack_b != s_.block())
      return fmt::format("Winograd reads weights in blocks of the {} outputs in registers, not {}", s_.block(),
                         s_.pack_b);
    return "";
  }

  std::string loops() {
    for (const auto* loops : {&s_.tasks, &s_.outer}) {
      std::set<std::string> seen;
      for (const ScheduledLoop& loop : *loops) {
        if (loop.dims.size() > 1)
          return fmt::format("Winograd's tasks are loops over single dims, not {}", fmt::join(loop.dims, "*"));
        const std::string& name = loop.dims[0];
        const int d = c_.find(name);
        const bool tasks = loops == &s_.tasks, of_weights = dims_.of_weights,
                   rows = d == dims_.p && tasks != of_weights;
        const bool channels = d == dims_.c && tasks && of_weights;
        if (!(d == dims_.n && (tasks || of_weights)) && !rows && !(d == dims_.k && (tasks || !of_weights)) && !channels)
          return fmt::format("Winograd's {} share out {}, not {}", tasks ? "tasks" : "outer loops",
                             tasks        ? of_weights ? "images, outputs and channels" : "images, rows and outputs"
                             : of_weights ? "images, and rows"
                                          : "outputs",
                             name);
        if (!seen.insert(name).second)
          return fmt::format("Winograd's tasks are cut once along a dim, not again along {}", name);
        if (loop.stride > 0) return "threads share inner loops of a device, not of Winograd";
        if (rows && loop.step % dims_.down.results() != 0)
          return fmt::format("{} rows of results are no patches of {}", loop.step, dims_.down.results());
        if (channels && (loop.step % s_.lanes != 0 || loop.step == 0 || extent(d) % loop.step != 0))
          return fmt::format("tasks of {} {} are no whole vectors that fill {}", loop.step, name, extent(d));
        if (d == dims_.k && loop.step % s_.block() != 0)
          return fmt::format("{} of {} {} are no multiple of the {} in registers", tasks ? "tasks" : "blocks",
                             loop.step, name, s_.block());
        for (const ScheduledLoop& task : s_.tasks)
          if (!tasks && task.dims == loop.dims && std::min(step(task), extent(d)) % step(loop) != 0)
            return fmt::format("steps of {} {} do not fill those of its tasks", step(loop), name);
      }
    }
    return "";
  }

  const ir::Contraction& c_;
  const Schedule& s_;
  const WinogradDims& dims_;
};

}  // namespace

std::string check_winograd(const ir::Contraction& c, const Schedule& s) {
  const std::optional<WinogradDims> dims = winograd_dims(c);
  if (!dims)
    return fmt::format(
        "Winograd computes windows of two or three neighbouring taps along an axis, three with a stride "
        "of 2, without groups, and not {}",
        str(c));
  return WinogradCheck(c, s, *dims).run();
}

}  // namespace fusejit::scheduler
