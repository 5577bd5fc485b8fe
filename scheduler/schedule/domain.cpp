#include "scheduler/schedule/domain.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

namespace fusejit::scheduler {

int Domain::find(const std::string& name) const {
  const auto found = std::find_if(axes.begin(), axes.end(), [&](const DomainAxis& axis) { return axis.name == name; });
  return found == axes.end() ? -1 : static_cast<int>(found - axes.begin());
}

std::int64_t Domain::elements() const {
  std::int64_t all = 1;
  for (const DomainAxis& axis : axes) all *= axis.extent;
  return all;
}

const std::string& rows_of_windows(const Domain& domain, const Schedule& schedule) {
  if (!schedule.panel_maxima.empty()) return domain.maxima_rows;
  return !schedule.unroll.empty() && schedule.unroll == domain.windows ? domain.windows[0].dims[0] : domain.pooled_rows;
}

std::string str(const Domain& domain) {
  std::vector<std::string> names, parallel, reduced, sums, windows;
  for (const DomainAxis& axis : domain.axes) {
    names.push_back(axis.name);
    (axis.reduced ? reduced : parallel).push_back(fmt::format("{} {}", axis.name, axis.extent));
  }
  for (const Domain::Sum& sum : domain.sums) sums.push_back(fmt::format("{} {}", name(sum.combiner), name(sum.type)));
  for (const Extent& window : domain.windows) windows.push_back(fmt::format("{} {}", window.dims[0], window.count));
  std::string text = fmt::format("[{}]", fmt::join(names, ", "));
  if (!names.empty()) text += "; ";
  text += fmt::format("{}", fmt::join(parallel, ", "));
  if (!reduced.empty()) text += fmt::format("{}| {}", parallel.empty() ? "" : " ", fmt::join(reduced, ", "));
  if (!sums.empty()) text += fmt::format("; sums {}", fmt::join(sums, ", "));
  if (!windows.empty()) text += fmt::format("; windows {}", fmt::join(windows, ", "));
  if (!domain.maxima_rows.empty()) text += fmt::format("; maxima {} {}", domain.maxima_rows, domain.maxima_columns);
  if (!domain.pooled_rows.empty()) text += fmt::format("; pools {}", domain.pooled_rows);
  return text;
}

}  // namespace fusejit::scheduler
