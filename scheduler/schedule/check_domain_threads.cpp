#include "scheduler/schedule/check_domain_threads.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "ir/kernel/walk.h"
#include "ir/ops/geometry/window.h"
#include "scheduler/schedule/check_threads.h"
#include "scheduler/schedule/limits.h"

namespace fusejit::scheduler {
namespace {

using ir::Binding;

// Of a tree: what a block shares has room for so many states.
constexpr std::int64_t kMostThreadsOfSums = 256;
constexpr std::int64_t kMostLanes = 16;
constexpr std::int64_t kMostBlocks = 65535;  // along y of a grid

class DomainThreadsCheck {
 public:
  DomainThreadsCheck(const Domain& domain, const Schedule& schedule)
      : d_(domain), s_(schedule), sums_(!domain.sums.empty()) {
    for (const DomainAxis& axis : d_.axes) (axis.reduced ? reduced_ : kept_).push_back(axis.name);
  }

  std::string run() {
    for (const auto step : {&DomainThreadsCheck::lines, &DomainThreadsCheck::vector, &DomainThreadsCheck::tasks,
                            &DomainThreadsCheck::inner, &DomainThreadsCheck::idle, &DomainThreadsCheck::parts})
      if (std::string broken = (this->*step)(); !broken.empty()) return broken;
    return "";
  }

 private:
  const DomainAxis& last() const { return d_.axes.back(); }
  bool lanes_reduced() const { return !d_.axes.empty() && last().reduced; }
  // Combinations of axes, a vector of lanes as one.
  std::int64_t items(const std::vector<std::string>& axes) const {
    std::int64_t all = 1;
    for (const std::string& name : axes)
      all *= name == s_.vector ? ir::ceil_divide<std::int64_t>(d_.axis(name).extent, s_.lanes) : d_.axis(name).extent;
    return all;
  }
  // Of a step over them: of one axis alone it counts elements.
  std::int64_t unit(const std::vector<std::string>& axes) const {
    return axes == std::vector{s_.vector} ? s_.lanes : 1;
  }
  std::int64_t shared() const { return shared_ == nullptr ? 1 : shared_->stride; }

  std::string lines() {
    const std::pair<const char*, bool> others[] = {
        {"unroll", !s_.unroll.empty()},    {"outer", !s_.outer.empty()},      {"panel", !s_.panel_maxima.empty()},
        {"flush", !s_.flush.dims.empty()}, {"fetch", !s_.fetch.dims.empty()}, {"store", s_.stream}};
    for (const auto& [line, is_there] : others)
      if (is_there) return fmt::format("'{}' is for processors", line);
    return "";
  }

  std::string vector() {
    if (d_.axes.empty()) return s_.vector.empty() ? "" : "one element has no lanes";
    if (s_.vector != last().name)
      return fmt::format("lanes run along {}, whose elements lie side by side, not along '{}'", last().name, s_.vector);
    if (s_.lanes > kMostLanes || (s_.lanes & (s_.lanes - 1)) != 0)
      return fmt::format("a vector of {} lanes: only powers of two from 1 to {}", s_.lanes, kMostLanes);
    if (s_.vectors > 1) return "a thread holds one vector";
    if (last().extent % s_.lanes != 0 && (sums_ || d_.axes.size() > 1))
      return fmt::format("{} lanes do not fill {} {}, and there are other axes or sums", s_.lanes, last().extent,
                         last().name);
    return "";
  }

  // Parts of what is summed up, blocks of what is kept, its threads; nothing else.
  std::string tasks() {
    for (const ScheduledLoop& loop : s_.tasks) {
      const ScheduledLoop*& place = loop.bound == Binding::grid_y    ? parts_
                                    : loop.bound == Binding::grid_x  ? blocks_
                                    : loop.bound == Binding::block_x ? threads_
                                                                     : other_;
      if (loop.bound == Binding::none) return fmt::format("the loop {} is not bound", str(loop));
      if (place != nullptr || &place == &other_ || loop.stride > 0)
        return fmt::format(
            "the loop {} is no part of a sum along grid.y, no block along grid.x, no thread along block.x", str(loop));
      const bool after = (loop.bound == Binding::grid_y && (blocks_ || threads_)) ||
                         (loop.bound == Binding::grid_x && threads_ != nullptr);
      if (after) return fmt::format("the loop {} stands inside of {}: outermost first", str(loop), str(s_.tasks[0]));
      place = &loop;
    }
    if (parts_ != nullptr && (parts_->dims != reduced_ || parts_->step == 0))
      return fmt::format("parts of a sum are blocks of all that is summed up, {}, not {}", fmt::join(reduced_, "*"),
                         str(*parts_));
    if ((blocks_ == nullptr) != kept().empty())
      return kept().empty() ? "there is nothing to share out" : "no loop is bound to grid.x";
    if (threads_ != nullptr && (blocks_ == nullptr || threads_->dims != blocks_->dims || threads_->step > 0))
      return fmt::format("threads take a block of {}, not {}",
                         blocks_ == nullptr ? "nothing" : fmt::format("{}", fmt::join(blocks_->dims, "*")),
                         str(*threads_));
    if (blocks_ == nullptr) return "";
    if (sums_ && blocks_->dims != kept_)
      return fmt::format("blocks are of all that is kept, {}, not {}", fmt::join(kept_, "*"), str(*blocks_));
    if (!std::is_sorted(blocks_->dims.begin(), blocks_->dims.end(),
                        [&](const auto& a, const auto& b) { return d_.find(a) < d_.find(b); }) ||
        (!sums_ && !by_rows() && blocks_->dims.back() != last().name))
      return fmt::format("threads side by side take what lies side by side in memory, not {}", str(*blocks_));
    if ((blocks_->step > 0) != (threads_ != nullptr) || blocks_->step % unit(blocks_->dims) != 0)
      return fmt::format("the loop {} leaves {}, and its threads take whole vectors", str(*blocks_),
                         threads_ == nullptr ? "no loop for a block" : "nothing");
    return "";
  }
  // What blocks are of: of a point-wise group as much as its schedule says.
  std::vector<std::string> kept() const {
    std::vector<std::string> axes = kept_;
    std::erase_if(axes, [&](const std::string& name) {
      return !sums_ && std::any_of(s_.inner.begin(), s_.inner.end(),
                                   [&](const ScheduledLoop& loop) { return loop.dims == std::vector{name}; });
    });
    return axes;
  }

  std::string inner() {
    std::vector<std::string> looped;
    for (const ScheduledLoop& loop : s_.inner) {
      if (loop.step > 0) return fmt::format("tasks cut an axis into blocks, and not the loop {}", str(loop));
      if (loop.bound == Binding::none && loop.stride == 0) {
        looped.insert(looped.end(), loop.dims.begin(), loop.dims.end());
        if (!sums_ && !by_rows() && loop.dims.size() > 1)
          return fmt::format("the loop {} goes over several axes", str(loop));
        continue;
      }
      if (&loop != &s_.inner.front() || !ir::is_block_axis(loop.bound) ||
          (threads_ != nullptr && loop.bound == Binding::block_x) || (sums_ && loop.dims != reduced_) ||
          (!sums_ && !is_rows(loop)))
        return fmt::format("threads share all that is {}, and not the loop {}", sums_ ? "summed up" : "in a row",
                           str(loop));
      if (loop.stride < 2 || (loop.stride & (loop.stride - 1)) != 0)
        return fmt::format("{} threads do not meet in a tree", loop.stride);
      shared_ = &loop;
    }
    if (sums_ && (s_.inner.size() != (shared_ != nullptr ? 2 : reduced_.empty() ? 0 : 1) || looped != reduced_))
      return fmt::format("one loop goes over all that is summed up, {}", fmt::join(reduced_, "*"));
    if (sums_) return "";
    if (shared_ != nullptr && (s_.inner.size() != 2 || looped != shared_->dims))
      return fmt::format("one loop goes over all that is in a row, {}", fmt::join(shared_->dims, "*"));
    if (blocks_ != nullptr) looped.insert(looped.end(), blocks_->dims.begin(), blocks_->dims.end());
    std::sort(looped.begin(), looped.end());
    std::vector<std::string> all = kept_;
    std::sort(all.begin(), all.end());
    return looped == all ? "" : fmt::format("every axis has one loop: {}", fmt::join(kept_, ", "));
  }

  // Without sums: a block for each row, whose threads take its vectors in turn. The last axes are a row, in the order
  // of memory.
  bool by_rows() const { return !sums_ && !s_.inner.empty() && s_.inner[0].stride > 0; }
  bool is_rows(const ScheduledLoop& loop) const {
    if (loop.bound != Binding::block_x || blocks_ == nullptr || blocks_->step > 0 || loop.dims.back() != s_.vector)
      return false;
    std::vector<std::string> all = blocks_->dims;
    all.insert(all.end(), loop.dims.begin(), loop.dims.end());
    return all == kept_;
  }

  // Threads that meet have something to do, all of them.
  std::string idle() {
    const std::int64_t width = threads_ == nullptr ? 1 : blocks_->step / unit(blocks_->dims), all = width * shared(),
                       most = sums_ ? kMostThreadsOfSums : kMostThreads;
    if (threads_ != nullptr && width > items(blocks_->dims))
      return fmt::format("a block of {} threads for {} vectors", width, items(blocks_->dims));
    if (all > most) return fmt::format("a block of {} threads; at most {}", all, most);
    if (shared_ != nullptr && blocks_ != nullptr && items(blocks_->dims) % width != 0)
      return fmt::format("threads share the loop {} inside of {}, where some have nothing to do", str(*shared_),
                         str(*threads_));
    return "";
  }

  std::string parts() {
    if (parts_ == nullptr) return "";
    const std::int64_t all = items(reduced_), step = parts_->step / unit(reduced_);
    if (parts_->step % (unit(reduced_) * shared()) != 0)
      return fmt::format("the loop {} has no whole turns of {} threads", str(*parts_), shared());
    if (step >= all) return fmt::format("the loop {} is one part of {}", str(*parts_), all);
    if (ir::ceil_divide(all, step) > kMostBlocks) return fmt::format("more than {} parts of a sum", kMostBlocks);
    return "";
  }

  const Domain& d_;
  const Schedule& s_;
  const bool sums_;
  std::vector<std::string> kept_, reduced_;
  const ScheduledLoop *parts_ = nullptr, *blocks_ = nullptr, *threads_ = nullptr, *other_ = nullptr, *shared_ = nullptr;
};

}  // namespace

std::string check_domain_threads(const Domain& domain, const Schedule& schedule) {
  return DomainThreadsCheck(domain, schedule).run();
}

}  // namespace fusejit::scheduler
