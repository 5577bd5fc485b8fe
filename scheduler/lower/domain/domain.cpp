#include "scheduler/lower/domain/domain.h"

#include <fmt/format.h>

#include <algorithm>

#include "ir/base/check.h"
#include "scheduler/choose/choose.h"
#include "scheduler/fuse/analysis.h"
#include "scheduler/lower/accumulator.h"
#include "scheduler/lower/expression/kept_maxima.h"

namespace fusejit::scheduler {
namespace {

// Images are [n, c, h, w]; of merged dims the names stand side by side.
std::string axis_name(const Axis& axis, int rank) {
  std::string name;
  for (const int d : axis.dims) name += rank == 4 ? "nchw"[d] : static_cast<char>('i' + d);
  return name.empty() ? "one" : name;
}

// The first max_pool2d_grad whose windows fill the image and whose rows and columns are reduced axes of their own.
void find_windows(const GroupKernel& kernel, GroupDomain& found) {
  const std::vector<Axis>& axes = kernel.space().axes;
  for (const auto* list : {&kernel.group().inner, &kernel.group().stores}) {
    for (const int id : *list) {
      const ir::Node& node = *kernel.graph().value(id);
      if (node.op != ir::Op::max_pool2d_grad || found.pooled >= 0) continue;
      std::vector<Extent> windows;
      for (const int d : {0, 1}) {
        const Window window = pooled_window(node, d);
        const auto axis = std::find_if(axes.begin(), axes.end(),
                                       [&](const Axis& a) { return a.reduced && a.dims == std::vector<int>{d + 2}; });
        if (!window.tiles() || window.in % window.stride != 0 || axis == axes.end()) break;
        windows.push_back({{found.domain.axes[static_cast<std::size_t>(axis - axes.begin())].name}, window.stride});
      }
      if (windows.size() == 2) found.pooled = id, found.domain.windows = std::move(windows);
    }
  }
}

// The first max_pool2d of a group of its results, where rows and columns are axes of their own and channels lanes.
void find_pool(const GroupKernel& kernel, GroupDomain& found) {
  const std::vector<Axis>& axes = kernel.space().axes;
  const auto rows = std::find_if(axes.begin(), axes.end(), [](const Axis& a) { return a.dims == std::vector{2}; });
  if (rows == axes.end() || !found.domain.sums.empty()) return;
  if (axes.end() - rows != 3 || rows[1].dims != std::vector{3} || rows[2].dims != std::vector{1}) return;
  for (const auto* list : {&kernel.group().inner, &kernel.group().stores}) {
    for (const int id : *list) {
      const ir::Node& node = *kernel.graph().value(id);
      if (node.op != ir::Op::max_pool2d || node.type.shape != kernel.group().domain.shape) continue;
      found.pool = id;
      found.domain.pooled_rows = found.domain.axes[static_cast<std::size_t>(rows - axes.begin())].name;
      return;
    }
  }
}

GroupDomain domain_of(GroupKernel& kernel, int overlapping) {
  GroupDomain of;
  for (const Axis& axis : kernel.space().axes)
    of.domain.axes.push_back({axis_name(axis, kernel.group().domain.shape.rank()), axis.extent, axis.reduced});
  const Accumulators accumulators(kernel);
  for (const Accumulation& a : accumulators.list()) of.domain.sums.push_back({a.combiners[0], a.types[0]});
  if (overlapping >= 0) {
    const KeptMaxima maxima(kernel, overlapping);
    of.overlapping = overlapping;
    of.domain.maxima_rows = of.domain.axes[maxima.row_axis()].name;
    of.domain.maxima_columns = of.domain.axes[maxima.column_axis()].name;
  } else if (kernel.context().target.isa != Isa::cuda && !of.domain.axes.empty() && !of.domain.axes.back().reduced) {
    find_windows(kernel, of);
    find_pool(kernel, of);
  }
  return of;
}

// As the last of its step's ops is called.
std::string last_op(const ir::Graph& graph, const Group& group) {
  const auto& list = !group.finals.empty() ? group.finals : !group.reductions.empty() ? group.reductions : group.stores;
  return label(graph, list.back());
}

}  // namespace

std::optional<LoweredGroup> lower_domain(const LowerContext& context, const Group& group, int lanes) {
  const bool cuda = context.target.isa == Isa::cuda;
  const int overlapping = overlapping_pool_grad(context, group);
  GroupKernel kernel(context, group, overlapping < 0, lanes);
  const GroupDomain of = domain_of(kernel, overlapping);
  const bool flat = of.domain.axes.size() < 2 && of.domain.sums.empty();  // only such a kernel has a tail
  if (cuda && !flat && of.domain.axes.back().extent % lanes != 0) return std::nullopt;
  Schedule schedule = candidates(of.domain, context.target,
                                 {kernel.lanes(), kernel.largest_stored_bytes(), kernel.stores_bits(), context.after})
                          .front();
  std::string broken = check(of.domain, schedule, context.target);
  FJ_ASSERT(broken.empty(), "{} for {}: {}", print(schedule), str(of.domain), broken);
  if (context.reschedule.domain) {
    schedule = context.reschedule.domain(last_op(context.graph, group), of.domain, schedule);
    broken = check(of.domain, schedule, context.target);
    if (broken.empty() && cuda && schedule.lanes > lanes)
      broken = fmt::format("a thread does not access {} elements at once here", schedule.lanes);
    FJ_CHECK(broken.empty(), "{} is no schedule of {}: {}", print(schedule), str(of.domain), broken);
  }
  if (!schedule.vector.empty() && !cuda) kernel.set_lanes(schedule.lanes);
  const auto build = cuda ? build_by_threads : group.reductions.empty() ? build_pointwise : build_reduction;
  build(kernel, of, schedule);
  if (cuda && !kernel.builder().vectors_aligned()) return std::nullopt;
  LoweredGroup lowered;
  lowered.kernels.push_back(std::move(kernel).finish());
  lowered.schedules.push_back({Work::domain, str(of.domain), std::move(schedule)});
  if (context.reschedule) verify(*lowered.kernels[0].kernel);
  return lowered;
}

}  // namespace fusejit::scheduler
