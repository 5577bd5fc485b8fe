// What the loops of a schedule go over, axis by axis, where a task has a block of it: point-wise groups and reductions
// on a processor.
#pragma once

#include <functional>
#include <vector>

#include "ir/kernel/builder.h"
#include "scheduler/lower/split.h"
#include "scheduler/schedule/domain.h"

namespace fusejit::scheduler {

class Ranges {
 public:
  Ranges(ir::KernelBuilder& builder, const Domain& domain, const Schedule& schedule);

  // Parallel loops over the tasks that share this axis.
  void tasks(std::size_t axis, const std::function<void()>& body);
  // body(element) for what the task at hand has of it, ascending: every element, the first of those that are unrolled
  // together; along the vector's axis the first of each block of whole vectors.
  void each(std::size_t axis, const std::function<void(ir::Index)>& body);
  // The same, so many elements of a turn as copies: an index in one of them is the turn's plus a constant. Where tasks
  // share the axis they are not.
  void each_in_copies(std::size_t axis, std::int64_t copies, const std::function<void(ir::Index)>& body);
  // The same in loops of their own before, between and after these elements, where no tasks share the axis: of each it
  // is known where it is.
  void each_in_parts(std::size_t axis, const std::vector<std::int64_t>& bounds,
                     const std::function<void(ir::Index)>& body);
  // Of what the task has.
  ir::Index first(std::size_t axis) const;
  bool is_cut(std::size_t axis) const { return of(axis).chunks > 1; }
  // Blocks of `unit` elements, cut into tasks.
  const Split& of(std::size_t axis) const { return splits_[axis]; }
  std::int64_t unit(std::size_t axis) const { return units_[axis]; }
  const ir::Index& task(std::size_t axis) const { return tasks_[axis]; }

 private:
  ir::KernelBuilder& builder_;
  std::vector<Split> splits_;
  std::vector<std::int64_t> units_;
  std::vector<ir::Index> tasks_;
};

// The axes of these loops.
std::vector<std::size_t> axes_of(const Domain& domain, const std::vector<ScheduledLoop>& loops);

}  // namespace fusejit::scheduler
