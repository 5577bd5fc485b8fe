#include "scheduler/lower/domain/next_windows.h"

#include <algorithm>

#include "scheduler/lower/split.h"
#include "scheduler/lower/tuning.h"

namespace fusejit::scheduler {

using ir::Index;

namespace {

// The first tap that no window before had: of all where windows do not overlap.
std::int64_t first_new_tap(const Window& window) { return std::max<std::int64_t>(0, window.kernel - window.stride); }

}  // namespace

NextWindows::NextWindows(GroupKernel& kernel, int pool, const Schedule& schedule)
    : kernel_(kernel), pool_(schedule.fetch.dims.empty() ? -1 : pool), rows_ahead_(schedule.fetch.count) {
  if (!active()) return;
  const ir::Node& node = *kernel.graph().value(pool_);
  rows_ = ir::pool_window(node, 0), columns_ = ir::pool_window(node, 1);
}

void NextWindows::fetch(std::vector<Index> point, const Index& p, const Index& q, std::int64_t elements) {
  const ir::Node& node = *kernel_.graph().value(pool_);
  const auto operands = kernel_.graph().operands(pool_);
  const std::int64_t line = 64 * 8 / bits(node.operands[0].value.type().dtype),
                     lines = std::max<std::int64_t>(1, elements / line);
  const Index below = p + Index(rows_ahead_), channel = point.back();
  const auto fetch_line = [&](const Index& i) {
    point.back() = channel + i * line;
    kernel_.move_to(point);
    const LogicalIndex here = kernel_.here();
    for (std::int64_t r = first_new_tap(rows_); r < rows_.kernel; ++r)
      for (std::int64_t s = first_new_tap(columns_); s < columns_.kernel; ++s)
        kernel_.prefetch(operands[0], {here[0], here[1], rows_.input(below, Index(r)), columns_.input(q, Index(s))},
                         ir::PrefetchKind::l2);
    if (node.op == ir::Op::max_pool2d_grad)
      kernel_.prefetch(operands[1], {here[0], here[1], below, q}, ir::PrefetchKind::l2);
  };
  const std::vector<Index> before = kernel_.point();
  if (lines <= tuning::kMostFetchedLines) {
    unrolled(kernel_.builder(), lines, fetch_line);
  } else {
    kernel_.builder().loop(Index(0), Index(lines), ir::Binding::none, fetch_line);
  }
  kernel_.move_to(before);
}

}  // namespace fusejit::scheduler
