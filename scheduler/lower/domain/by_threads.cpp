// Groups without an anchor by threads of a device: what is kept is shared out to blocks and their threads, a vector a
// thread; what is summed up to parts of the grid and to threads, which meet in trees. Parts meet in `work`, in
// ascending order, so the result depends on the schedule only.
#include <algorithm>

#include "scheduler/lower/accumulator.h"
#include "scheduler/lower/cuda/parts.h"
#include "scheduler/lower/cuda/threads.h"
#include "scheduler/lower/domain/domain.h"
#include "scheduler/lower/partials.h"

namespace fusejit::scheduler {

using cuda::along;
using cuda::decode;
using cuda::each_lane;
using ir::Arg;
using ir::Binding;
using ir::Index;
using ir::KernelBuilder;

namespace {

const ScheduledLoop* bound_to(const std::vector<ScheduledLoop>& loops, Binding axis) {
  for (const ScheduledLoop& loop : loops)
    if (loop.bound == axis) return &loop;
  return nullptr;
}

// Threads of a block side by side.
std::int64_t width_of(const Schedule& s) {
  if (bound_to(s.tasks, Binding::block_x) == nullptr) return 1;
  const ScheduledLoop& blocks = *bound_to(s.tasks, Binding::grid_x);
  return blocks.step / (blocks.dims == std::vector{s.vector} ? s.lanes : 1);
}

class PointwiseByThreads {
 public:
  PointwiseByThreads(GroupKernel& kernel, const GroupDomain& of, const Schedule& schedule)
      : kernel_(kernel), builder_(kernel.builder()), d_(of.domain), s_(schedule), point_(d_.axes.size()) {}

  void emit() {
    if (!s_.inner.empty() && s_.inner[0].stride > 0) return rows();
    if (d_.axes.empty()) return cuda::each_thread(builder_, 1, 1, [&](const Index&) { store_here(); });
    if (d_.axes.size() == 1 && d_.axes[0].extent % s_.lanes != 0) return with_tail();
    std::vector<std::size_t> axes;
    std::vector<std::int64_t> extents;
    std::int64_t items = 1;
    for (const std::string& name : bound_to(s_.tasks, Binding::grid_x)->dims) {
      axes.push_back(static_cast<std::size_t>(d_.find(name)));
      extents.push_back(d_.axes[axes.back()].extent);
    }
    extents.back() /= s_.lanes;
    for (const std::int64_t extent : extents) items *= extent;
    cuda::each_thread(builder_, items, width_of(s_), [&](const Index& item) {
      const std::vector<Index> at = decode(item, extents);
      for (std::size_t i = 0; i < axes.size(); ++i) point_[axes[i]] = at[i];
      next_loop(0, at.back());
    });
  }

 private:
  void store_here() {
    kernel_.move_to(point_);
    kernel_.expression().nested([&] { kernel_.store_all(); });
  }

  // A block for each of the rows, whose vectors its threads take in turn.
  void rows() {
    struct Axes {
      std::vector<std::size_t> axes;
      std::vector<std::int64_t> extents;
      std::int64_t items = 1;
    } blocks, row;
    const auto collect = [&](const std::vector<std::string>& names, Axes& into) {
      for (const std::string& name : names) {
        into.axes.push_back(static_cast<std::size_t>(d_.find(name)));
        into.extents.push_back(d_.axes[into.axes.back()].extent / (name == s_.vector ? s_.lanes : 1));
        into.items *= into.extents.back();
      }
    };
    collect(s_.tasks[0].dims, blocks), collect(s_.inner[0].dims, row);
    const auto move = [&](const Axes& to, const Index& item) {
      const std::vector<Index> at = decode(item, to.extents);
      for (std::size_t i = 0; i < at.size(); ++i) point_[to.axes[i]] = at[i];
      return at.back();
    };
    const cuda::Partition spread{row.items, s_.inner[0].stride,
                                 ir::ceil_divide(row.items, s_.inner[0].stride) * s_.inner[0].stride};
    builder_.loop(Index(0), Index(blocks.items), Binding::grid_x, [&](const Index& block) {
      move(blocks, block);
      builder_.loop(Index(0), Index(spread.threads), Binding::block_x, [&](const Index& thread) {
        cuda::each_item(builder_, spread, Index(0), thread, [&](const Index& item) {
          const Index vector = move(row, item);
          next_loop(s_.inner.size(), vector);
        });
      });
    });
  }

  // Axes that a thread goes over by itself, then its vector.
  void next_loop(std::size_t i, const Index& vector) {
    if (i < s_.inner.size()) {
      const auto axis = static_cast<std::size_t>(d_.find(s_.inner[i].dims[0]));
      return builder_.loop(Index(0), Index(d_.axes[axis].extent), Binding::none, [&](const Index& element) {
        point_[axis] = element;
        next_loop(i + 1, vector);
      });
    }
    each_lane(builder_, s_.lanes, [&](const Index& lane) {
      point_.back() = vector * s_.lanes + lane;
      store_here();
    });
  }

  // The one axis is no whole number of vectors: the thread after the last whole one takes the tail, element by element.
  void with_tail() {
    const std::int64_t lanes = s_.lanes, extent = d_.axes[0].extent, whole = extent / lanes;
    cuda::each_thread(builder_, whole + 1, width_of(s_), [&](const Index& item) {
      builder_.when(
          {compare(item, ir::CompareKind::lt, whole)}, [&] { next_loop(0, item); },
          [&] {
            each_lane(builder_, lanes, [&](const Index& lane) {
              const Index element = item * lanes + lane;
              builder_.when({compare(element, ir::CompareKind::lt, extent)}, [&] { point_ = {element}, store_here(); });
            });
          });
    });
  }

  GroupKernel& kernel_;
  KernelBuilder& builder_;
  const Domain& d_;
  const Schedule& s_;
  std::vector<Index> point_;
};

class ReducerByThreads {
 public:
  ReducerByThreads(GroupKernel& kernel, const GroupDomain& of, const Schedule& schedule)
      : kernel_(kernel),
        builder_(kernel.builder()),
        d_(of.domain),
        s_(schedule),
        accumulators_(kernel),
        point_(d_.axes.size()),
        lanes_kept_(!d_.axes.back().reduced) {
    for (std::size_t a = 0; a < d_.axes.size(); ++a) {
      const DomainAxis& axis = d_.axes[a];
      (axis.reduced ? reduced_ : kept_).push_back(a);
      (axis.reduced ? reduced_extents_ : kept_extents_).push_back(axis.extent);
      (axis.reduced ? total_ : kept_total_) *= axis.extent;
    }
    accumulators_.share_shifts();
    if (!s_.inner.empty() && s_.inner[0].stride > 0) shared_ = &s_.inner[0];
    const std::int64_t lanes = lanes_kept_ ? 1 : s_.lanes, threads = shared_ != nullptr ? shared_->stride : 1;
    spread_.items = total_ / lanes, spread_.threads = threads;
    spread_.chunk = (spread_.items + threads - 1) / threads * threads;
    if (const ScheduledLoop* parts = bound_to(s_.tasks, Binding::grid_y)) {
      spread_.chunk = parts->step / (parts->dims == std::vector{s_.vector} ? s_.lanes : 1);
      spread_.parts = (spread_.items + spread_.chunk - 1) / spread_.chunk;
    }
  }

  void emit() {
    if (spread_.parts > 1) work_ = declare_partials(kernel_, accumulators_, spread_.parts);
    along(builder_, spread_.parts, Binding::grid_y, [&](const Index& part) {
      each_kept([&](const Index& item) {
        if (!lanes_kept_) return sum(part, item);
        each_lane(builder_, s_.lanes, [&](const Index& lane) { sum(part, item * s_.lanes + lane); });
      });
    });
    if (spread_.parts == 1) return;
    cuda::combine_parts(kernel_, accumulators_, work_, spread_.parts, total_, kept_total_, [&](const Index& element) {
      move_kept(element);
      return point_;
    });
  }

 private:
  // Vectors or elements of what is kept: a thread each, or a block.
  void each_kept(const std::function<void(Index)>& body) {
    const std::int64_t items = lanes_kept_ ? kept_total_ / s_.lanes : kept_total_;
    const bool alone = kept_.empty() && shared_ == nullptr;
    if (alone || bound_to(s_.tasks, Binding::block_x) != nullptr)
      return cuda::each_thread(builder_, items, width_of(s_), body);
    builder_.loop(Index(0), Index(items), Binding::grid_x, body);
  }

  void move_kept(const Index& element) {
    const std::vector<Index> at = decode(element, kept_extents_);
    for (std::size_t i = 0; i < kept_.size(); ++i) point_[kept_[i]] = at[i];
  }
  // Moves to item `item` of the reduced axes; the last axis in vectors of `lanes` if it is one of them.
  void move_reduced(const Index& item, const Index& lane) {
    if (reduced_.empty()) return;  // dims of one element are no axes
    const std::int64_t lanes = lanes_kept_ ? 1 : s_.lanes;
    std::vector<std::int64_t> extents = reduced_extents_;
    extents.back() /= lanes;
    const std::vector<Index> at = decode(item, extents);
    for (std::size_t i = 0; i < reduced_.size(); ++i) point_[reduced_[i]] = at[i];
    point_[reduced_.back()] = at.back() * lanes + lane;
  }

  // Row-major position among the reduced elements, for argmax.
  Index flat() const {
    Index position = 0;
    for (const std::size_t a : reduced_) position = position * d_.axes[a].extent + point_[a];
    return position;
  }

  void visit(const Accumulators::State& state) {
    kernel_.move_to(point_);
    kernel_.expression().nested([&] {
      kernel_.store_all(accumulators_.expressions());
      accumulators_.add(state, Index(0), flat());
    });
  }

  // The state of one thread and lane over their share.
  std::vector<Arg> walk(const Index& part, const Index& thread, const Index& lane, const std::vector<Arg>& shifts) {
    const Accumulators::State state = accumulators_.open_shared(shifts);
    const auto visit_item = [&](const Index& item) { move_reduced(item, lane), visit(state); };
    const auto flush = [&] { accumulators_.flush(state); };
    const std::int64_t block = accumulators_.block_of_moments();
    cuda::Partition spread = spread_;
    // Of one thread's stores at several digits of an item's number it is proven in one loop alone that they are apart.
    spread.last_apart = kernel_.group().stores.empty() || reduced_.size() < 2 || spread.threads > 1;
    if (block == 0)
      cuda::each_item(builder_, spread, part, thread, visit_item);
    else
      cuda::each_item_in_blocks(builder_, spread, part, thread, block, visit_item, flush);
    return accumulators_.partial(state, Index(0), {});
  }

  // The states of `extent` threads or lanes, joined in a tree.
  std::vector<Arg> join(std::int64_t extent, Binding binding, const std::function<std::vector<Arg>(Index)>& state) {
    if (extent == 1) return state(Index(0));
    const std::vector<ir::ValueId> joined = builder_.reduce(
        {Index(0)}, {Index(extent)}, binding, accumulators_.running_combiners(), accumulators_.running_types(), state);
    return {joined.begin(), joined.end()};
  }

  void sum(const Index& part, const Index& element) {
    move_kept(element), move_reduced(Index(0), Index(0));
    kernel_.move_to(point_);
    const std::vector<Arg> shifts = kernel_.expression().nested([&] { return accumulators_.shifts(); });
    const std::vector<Arg> running =
        join(spread_.threads, shared_ != nullptr ? shared_->bound : Binding::none, [&](const Index& thread) {
          return join(lanes_kept_ ? 1 : s_.lanes, Binding::vector,
                      [&](const Index& lane) { return walk(part, thread, lane, shifts); });
        });
    const std::vector<Arg> state = accumulators_.with_shifts(running, shifts);
    if (spread_.parts > 1) {
      const std::vector<Index> index = partial_index(kernel_, part, point_);
      for (std::size_t c = 0; c < work_.size(); ++c) builder_.store(work_[c], index, state[c]);
      return;
    }
    kernel_.move_to(point_);
    kernel_.expression().nested([&] { accumulators_.finish(state, total_); });
  }

  GroupKernel& kernel_;
  KernelBuilder& builder_;
  const Domain& d_;
  const Schedule& s_;
  Accumulators accumulators_;
  std::vector<Index> point_;
  const bool lanes_kept_;
  const ScheduledLoop* shared_ = nullptr;  // by threads of a block: what is summed up
  std::vector<std::size_t> reduced_, kept_;
  std::vector<std::int64_t> reduced_extents_, kept_extents_;
  std::int64_t total_ = 1, kept_total_ = 1;
  cuda::Partition spread_;  // of the reduced items
  std::vector<ir::MemId> work_;
};

}  // namespace

void build_by_threads(GroupKernel& kernel, const GroupDomain& of, const Schedule& schedule) {
  if (of.domain.sums.empty()) return PointwiseByThreads(kernel, of, schedule).emit();
  ReducerByThreads(kernel, of, schedule).emit();
}

}  // namespace fusejit::scheduler
