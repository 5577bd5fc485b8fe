#include "scheduler/lower/domain/ranges.h"

namespace fusejit::scheduler {

using ir::Binding;
using ir::Index;

std::vector<std::size_t> axes_of(const Domain& domain, const std::vector<ScheduledLoop>& loops) {
  std::vector<std::size_t> axes;
  for (const ScheduledLoop& loop : loops) axes.push_back(static_cast<std::size_t>(domain.find(loop.dims[0])));
  return axes;
}

Ranges::Ranges(ir::KernelBuilder& builder, const Domain& domain, const Schedule& schedule)
    : builder_(builder), tasks_(domain.axes.size(), Index(0)) {
  for (const DomainAxis& axis : domain.axes) {
    std::int64_t unit = axis.name == schedule.vector ? schedule.block() : 1;
    for (const Extent& extent : schedule.unroll)
      if (extent.dims[0] == axis.name && axis.name != schedule.vector) unit = extent.count;
    std::int64_t chunk = axis.extent / unit;
    for (const ScheduledLoop& loop : schedule.tasks)
      if (loop.dims[0] == axis.name) chunk = loop.step > 0 ? loop.step / unit : 1;
    const std::int64_t count = axis.extent / unit;
    units_.push_back(unit);
    splits_.push_back({count, chunk, chunk == count ? 1 : (count + chunk - 1) / chunk});
  }
}

void Ranges::tasks(std::size_t axis, const std::function<void()>& body) {
  builder_.loop(Index(0), Index(of(axis).chunks), Binding::threads, [&](Index task) {
    tasks_[axis] = task;
    body();
  });
  tasks_[axis] = 0;
}

void Ranges::each(std::size_t axis, const std::function<void(Index)>& body) {
  const auto step = [&](const Index& i) { body(i * unit(axis)); };
  if (is_cut(axis)) return loop_chunk(builder_, of(axis), tasks_[axis], step);
  builder_.loop(Index(0), Index(of(axis).count), Binding::none, step);
}

void Ranges::each_in_copies(std::size_t axis, std::int64_t copies, const std::function<void(Index)>& body) {
  if (is_cut(axis)) return each(axis, body);
  in_copies(builder_, of(axis).count, copies, [&](const Index& i) { body(i * unit(axis)); });
}

void Ranges::each_in_parts(std::size_t axis, const std::vector<std::int64_t>& bounds,
                           const std::function<void(Index)>& body) {
  if (unit(axis) > 1) return each(axis, body);
  std::vector<std::int64_t> ends = bounds;
  ends.push_back(of(axis).count);
  for (std::int64_t low = 0; const std::int64_t high : ends) {
    if (low < high) builder_.loop(Index(low), Index(high), Binding::none, body);
    low = high;
  }
}

Index Ranges::first(std::size_t axis) const {
  return is_cut(axis) ? tasks_[axis] * (of(axis).chunk * unit(axis)) : Index(0);
}

}  // namespace fusejit::scheduler
