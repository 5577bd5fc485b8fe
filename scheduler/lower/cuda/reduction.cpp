// Groups with reductions, by where the last axis goes:
//   kept      neighbouring threads own neighbouring columns; rows of threads (block.y) share the rows of a part
//   reduced   a block of threads owns a kept element and strides along its elements
//   few       a thread owns a kept element and walks its few elements
// Threads meet in trees, parts of the grid through `work` in ascending order, so the result depends on shapes only.
#include <algorithm>

#include "scheduler/lower/accumulator.h"
#include "scheduler/lower/cuda/lower.h"
#include "scheduler/lower/cuda/parts.h"
#include "scheduler/lower/cuda/threads.h"
#include "scheduler/lower/partials.h"

namespace fusejit::scheduler::cuda {

using ir::Arg;
using ir::Binding;
using ir::Index;
using ir::KernelBuilder;

namespace {

constexpr std::int64_t kFewElements = 64;  // fewer are one thread's
constexpr std::int64_t kLeastSteps = 16;   // of a thread, before its part is split further

class Reducer {
 public:
  Reducer(GroupKernel& kernel, std::int64_t lanes)
      : kernel_(kernel),
        builder_(kernel.builder()),
        axes_(kernel.space().axes),
        accumulators_(kernel),
        point_(axes_.size()),
        lanes_(lanes) {
    for (std::size_t a = 0; a < axes_.size(); ++a) {
      (axes_[a].reduced ? reduced_ : kept_).push_back(a);
      (axes_[a].reduced ? total_ : kept_total_) *= axes_[a].extent;
    }
    // A vector of lanes counts as one element of the last axis.
    for (const std::size_t a : reduced_) reduced_extents_.push_back(axes_[a].extent);
    for (const std::size_t a : kept_) kept_extents_.push_back(axes_[a].extent);
  }

  void emit() {
    if (axes_.back().reduced) {
      total_ < kFewElements ? few() : rows();
    } else {
      columns();
    }
  }

 private:
  void plan_parts(std::int64_t blocks, std::int64_t items, std::int64_t threads) {
    partition_ = partition_for_device(items, threads, blocks, kLeastSteps);
    if (partition_.parts > 1) work_ = declare_partials(kernel_, accumulators_, partition_.parts);
  }

  void move_kept(const Index& element) {
    const std::vector<Index> at = decode(element, kept_extents_);
    for (std::size_t i = 0; i < kept_.size(); ++i) point_[kept_[i]] = at[i];
  }
  // Moves to item `item` of the reduced axes; the last axis in vectors of `lanes` if it is one of them.
  void move_reduced(const Index& item, std::int64_t lanes, const Index& lane) {
    if (reduced_.empty()) return;  // dims of one element are no axes
    std::vector<std::int64_t> extents = reduced_extents_;
    extents.back() /= lanes;
    const std::vector<Index> at = decode(item, extents);
    for (std::size_t i = 0; i < reduced_.size(); ++i) point_[reduced_[i]] = at[i];
    point_[reduced_.back()] = at.back() * lanes + lane;
  }

  // Row-major position among the reduced elements, for argmax.
  Index flat() const {
    Index position = 0;
    for (const std::size_t a : reduced_) position = position * axes_[a].extent + point_[a];
    return position;
  }

  void visit(const Accumulators::State& state) {
    kernel_.move_to(point_);
    kernel_.expression().nested([&] {
      kernel_.store_all(accumulators_.expressions());
      accumulators_.add(state, Index(0), flat());
    });
  }

  // The state of one thread over its share, with `to_item` moving to one of the items.
  std::vector<Arg> walk(const Index& part, const Index& thread, const std::function<void(Index)>& to_item) {
    const Accumulators::State state = accumulators_.open(1, [&](const Index&) {
      to_item(part * partition_.chunk);
      kernel_.move_to(point_);
    });
    each_item(builder_, partition_, part, thread, [&](Index item) { to_item(item), visit(state); });
    return accumulators_.partial(state, Index(0), item_count(builder_, partition_, part, thread, 1));
  }

  using State = std::function<std::vector<Arg>(Index)>;
  // The states of `extent` threads or lanes, joined in a tree.
  std::vector<Arg> join(std::int64_t extent, Binding binding, const State& state) {
    if (extent == 1) return state(Index(0));
    const std::vector<ir::ValueId> joined =
        builder_.reduce({Index(0)}, {Index(extent)}, binding, accumulators_.combiners(), accumulators_.types(), state);
    return {joined.begin(), joined.end()};
  }

  void store_partial_or_finish(const Index& part, const std::vector<Arg>& state) {
    if (partition_.parts > 1) {
      const std::vector<Index> index = partial_index(kernel_, part, point_);
      for (std::size_t c = 0; c < work_.size(); ++c) builder_.store(work_[c], index, state[c]);
      return;
    }
    kernel_.move_to(point_);
    kernel_.expression().nested([&] { accumulators_.finish(state, total_); });
  }

  void combine() {
    if (partition_.parts == 1) return;
    combine_parts(kernel_, accumulators_, work_, partition_.parts, total_, kept_total_, [&](const Index& element) {
      move_kept(element);
      return point_;
    });
  }

  void columns() {
    const std::int64_t vectors = axes_.back().extent / lanes_;
    const std::int64_t width = divisor_up_to(vectors, kWarp);
    const std::int64_t rows = std::min(floor_power_of_two(kBlock / width), floor_power_of_two(2 * total_ - 1));
    const std::int64_t groups = kept_total_ / lanes_ / width;
    plan_parts(groups, total_, rows);
    along(builder_, partition_.parts, Binding::grid_y, [&](Index part) {
      builder_.loop(Index(0), Index(groups), Binding::grid_x, [&](Index group) {
        along(builder_, width, Binding::block_x, [&](Index column) {
          each_lane(builder_, lanes_, [&](Index lane) {
            move_kept((group * width + column) * lanes_ + lane);
            store_partial_or_finish(part, join(rows, Binding::block_y, [&](Index row) {
                                      return walk(part, row, [&](Index item) { move_reduced(item, 1, Index(0)); });
                                    }));
          });
        });
      });
    });
    combine();
  }

  void rows() {
    const std::int64_t items = total_ / lanes_;
    const std::int64_t threads =
        std::clamp<std::int64_t>(floor_power_of_two(std::max<std::int64_t>(1, items / 2)), kWarp, kBlock);
    plan_parts(kept_total_, items, threads);
    along(builder_, partition_.parts, Binding::grid_y, [&](Index part) {
      builder_.loop(Index(0), Index(kept_total_), Binding::grid_x, [&](Index element) {
        move_kept(element);
        store_partial_or_finish(part, join(threads, Binding::block_x, [&](Index thread) {
                                  return join(lanes_, Binding::vector, [&](Index lane) {
                                    return walk(part, thread, [&](Index item) { move_reduced(item, lanes_, lane); });
                                  });
                                }));
      });
    });
    combine();
  }

  void few() {
    partition_ = {total_, 1, total_, 1};
    each_thread(builder_, kept_total_, [&](Index element) {
      move_kept(element);
      store_partial_or_finish(Index(0), walk(Index(0), Index(0), [&](Index item) { move_reduced(item, 1, Index(0)); }));
    });
  }

  GroupKernel& kernel_;
  KernelBuilder& builder_;
  const std::vector<Axis>& axes_;
  Accumulators accumulators_;
  std::vector<Index> point_;
  const std::int64_t lanes_;
  std::vector<std::size_t> reduced_, kept_;
  std::vector<std::int64_t> reduced_extents_, kept_extents_;
  std::int64_t total_ = 1, kept_total_ = 1;
  Partition partition_;
  std::vector<ir::MemId> work_;
};

}  // namespace

void emit_reduction(GroupKernel& kernel, std::int64_t lanes) { Reducer(kernel, lanes).emit(); }

}  // namespace fusejit::scheduler::cuda
