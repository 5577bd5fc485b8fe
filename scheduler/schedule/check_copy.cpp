// Where a copy of the first operand may store it by the way.
#include <fmt/format.h>

#include "scheduler/schedule/schedule.h"

namespace fusejit::scheduler {
namespace {

// The dim whose element this index is, where no tap, stride or padding makes another of it; -1: it is none. `single`:
// there is but one element.
int dim_of(const ir::Contraction& c, std::size_t axis, bool& single) {
  const ir::DimSum& sum = c.a.index[axis];
  int dim = -1, dims = 0;
  for (const ir::DimSum::Term& term : sum.terms) {
    if (c.dims[static_cast<std::size_t>(term.dim)].extent == 1) continue;
    if (term.coefficient == 1) dim = term.dim;
    ++dims;
  }
  single = dims == 0 && sum.constant == 0 && c.a.extents[axis] == 1;
  const bool whole =
      dims == 1 && dim >= 0 && sum.constant == 0 && c.dims[static_cast<std::size_t>(dim)].extent == c.a.extents[axis];
  return whole ? dim : -1;
}

}  // namespace

std::string check_copy(const ir::Contraction& c, const Schedule& s) {
  for (std::size_t axis = 0; axis < c.a.index.size(); ++axis) {
    bool single = false;
    if (dim_of(c, axis, single) < 0 && !single)
      return "the first operand is to be stored while it is copied, but its elements are not read one by one";
  }
  if (s.panel_a != Schedule::kTask || s.winograd > 0 || s.by_threads())
    return "the first operand is to be stored while it is copied, which takes 'panel a'";
  if (!s.dot.empty() || s.tiles_a)
    return "the first operand is to be stored while it is copied, element by element and not by pairs or tiles";
  for (const ScheduledLoop& task : s.tasks) {
    for (const std::string& name : task.dims) {
      const int d = c.find(name);
      if (!c.a.mentions(d) && c.dims[static_cast<std::size_t>(d)].extent > 1)
        return fmt::format("the first operand is to be stored while it is copied, but tasks of {} all copy it", name);
    }
  }
  return "";
}

}  // namespace fusejit::scheduler
