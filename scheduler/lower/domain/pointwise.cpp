// Groups without reductions: every value of the domain is computed and stored once, the last axis in lanes.
#include <algorithm>
#include <optional>

#include "scheduler/lower/domain/domain.h"
#include "scheduler/lower/domain/next_windows.h"
#include "scheduler/lower/domain/ranges.h"
#include "scheduler/lower/expression/kept_maxima.h"

namespace fusejit::scheduler {

using ir::Binding;
using ir::Index;

namespace {

// The max_pool2d whose windows a kernel looks through, for each of which its taps are copies where none is outside.
struct Pool {
  static constexpr std::int64_t kMostTaps = 9;
  struct Side {
    std::size_t axis = 0;
    Window window;
    // The first of its results, and the last, whose taps are all inside.
    std::int64_t left() const {
      return std::clamp<std::int64_t>(window.first_result_of_tap(std::int64_t{0}), 0, window.out);
    }
    std::int64_t right() const {
      return std::clamp<std::int64_t>(window.end_result_of_tap(window.kernel - 1), left(), window.out);
    }
  };
  std::vector<Side> sides;

  explicit Pool(const GroupKernel& kernel) {
    const std::vector<Axis>& axes = kernel.space().axes;
    for (const auto* list : {&kernel.group().inner, &kernel.group().stores}) {
      for (const int id : *list) {
        const ir::Node& node = *kernel.graph().value(id);
        if (node.op != ir::Op::max_pool2d || node.type.shape != kernel.group().domain.shape || !sides.empty()) continue;
        const Window windows[] = {ir::pool_window(node, 0), ir::pool_window(node, 1)};
        if (windows[0].kernel * windows[1].kernel > kMostTaps) continue;
        for (std::size_t i = 0; i + 1 < axes.size(); ++i)
          for (const int d : {0, 1})
            if (axes[i].dims == std::vector{d + 2} && !windows[d].inside()) sides.push_back({i, windows[d]});
      }
    }
  }
  const Side* along(std::size_t axis) const {
    const auto found = std::find_if(sides.begin(), sides.end(), [&](const Side& side) { return side.axis == axis; });
    return found == sides.end() ? nullptr : &*found;
  }
};

class Pointwise {
 public:
  Pointwise(GroupKernel& kernel, const GroupDomain& of, const Schedule& schedule)
      : kernel_(kernel),
        builder_(kernel.builder()),
        s_(schedule),
        ranges_(builder_, of.domain, schedule),
        maxima_(kernel, schedule.panel_maxima.empty() ? -1 : of.overlapping),
        next_(kernel, maxima_.active() ? of.overlapping : of.pool, schedule),
        rows_(schedule.fetch.dims.empty() ? 0 : static_cast<std::size_t>(of.domain.find(schedule.fetch.dims[0]))),
        tasks_(axes_of(of.domain, schedule.tasks)),
        loops_(axes_of(of.domain, schedule.inner)),
        lanes_(of.domain.axes.size() - 1),
        point_(of.domain.axes.size()),
        pool_(kernel) {}

  void emit() {
    if (point_.empty()) return store_here(Vectors::some);
    next_task(0);
  }

 private:
  void store_here(Vectors vectors) {
    kernel_.move_to(point_);
    kernel_.expression().nested([&] { kernel_.store_all({}, s_.stream ? vectors : Vectors::some); });
  }

  void next_task(std::size_t i) {
    if (i == tasks_.size()) return next_loop(0);
    ranges_.tasks(tasks_[i], [&] {
      point_[tasks_[i]] = ranges_.first(tasks_[i]);
      next_task(i + 1);
    });
  }

  void next_loop(std::size_t i, std::optional<Vectors> filled = {}) {
    if (i == loops_.size() && filled) return store_here(*filled);
    if (!filled && (i == loops_.size() || loops_[i] == lanes_)) {
      const std::size_t inside = std::min(i + 1, loops_.size());
      return vectors([&](Vectors all) { next_loop(inside, all); });
    }
    const std::size_t axis = loops_[i];
    if (maxima_.active() && (axis == maxima_.row_axis() || axis == maxima_.column_axis())) return rows();
    const auto one = [&](const Index& element) {
      point_[axis] = element;
      next_loop(i + 1, filled);
    };
    const Pool::Side* side = pool_.along(axis);
    if (side == nullptr) return ranges_.each(axis, one);
    if (!ranges_.is_cut(axis)) return ranges_.each_in_parts(axis, {side->left(), side->right()}, one);
    // Of tasks that share the axis each asks.
    ranges_.each(axis, [&](const Index& element) {
      const Window& w = side->window;
      const auto when = [&](std::vector<ir::Compare> inside, bool all) {
        if (all) kernel_.expression().assume_inside(element);
        builder_.when(std::move(inside), [&] { one(element); });
        kernel_.expression().assume_inside({});
      };
      const Index first = w.input(element, Index(0)), last = w.input(element, Index(w.kernel - 1));
      when({compare(first, ir::CompareKind::ge, 0), compare(last, ir::CompareKind::lt, w.in)}, true);
      when({compare(first, ir::CompareKind::lt, 0)}, false);
      if (side->right() < w.out)
        when({compare(first, ir::CompareKind::ge, 0), compare(last, ir::CompareKind::ge, w.in)}, false);
    });
  }

  // What the task at hand has along lanes: blocks of vectors, then, in the last task, what does not fill them.
  void vectors(const std::function<void(Vectors)>& body) {
    const std::int64_t lanes = s_.lanes, extent = kernel_.space().axes[lanes_].extent, whole = extent / lanes,
                       rest = extent % lanes, left = whole % s_.vectors;
    const auto block = [&](const Index& first, std::int64_t count) {
      if (next_.active() && !maxima_.active()) {
        point_[lanes_] = first;
        next_.fetch(point_, point_[rows_], point_[rows_ + 1], count * lanes);
      }
      unrolled(builder_, count, [&](const Index& vector) {
        builder_.loop(Index(0), Index(lanes), Binding::vector, [&](const Index& lane) {
          point_[lanes_] = first + vector * lanes + lane;
          body(Vectors::whole);
        });
      });
    };
    if (whole > 0) ranges_.each(lanes_, [&](const Index& first) { block(first, s_.vectors); });
    const auto tail = [&] {
      if (left > 0) block(Index((whole - left) * lanes), left);
      if (rest == 0) return;
      one_vector(builder_, s_.lanes, rest, [&](const Index& lane) {
        point_[lanes_] = lane + Index(whole * lanes);
        body(Vectors::some);
      });
    };
    if (left == 0 && rest == 0) return;
    if (!ranges_.is_cut(lanes_)) return tail();
    builder_.when({compare(ranges_.task(lanes_), ir::CompareKind::eq, ranges_.of(lanes_).chunks - 1)}, tail);
  }

  // Rows of the task at hand, which finds the windows that reach into them from above for itself.
  void rows() {
    const KeptMaxima::EachVector each_vector = [&](const std::function<void(const Index&)>& body) {
      vectors([&](Vectors) {
        kernel_.move_to(point_);
        body(point_[lanes_]);
      });
    };
    const std::int64_t channels = kernel_.space().axes[lanes_].extent;
    maxima_.declare(channels);
    if (next_.active())
      maxima_.beside([&](const Index& p, const Index& q) {
        point_[lanes_] = 0;
        next_.fetch(point_, p, q, channels);
      });
    maxima_.enter(ranges_.first(maxima_.row_axis()), each_vector);
    ranges_.each_in_copies(maxima_.row_axis(), maxima_.copies_of_rows(), [&](const Index& h) {
      maxima_.begin(h, each_vector);
      maxima_.columns([&](const Index& w) {
        point_[maxima_.row_axis()] = h, point_[maxima_.column_axis()] = w;
        vectors([&](Vectors filled) {
          kernel_.move_to(point_);
          maxima_.use(point_[lanes_]);
          store_here(filled);
        });
      });
    });
  }

  GroupKernel& kernel_;
  ir::KernelBuilder& builder_;
  const Schedule& s_;
  Ranges ranges_;
  KeptMaxima maxima_;  // of a max_pool2d_grad whose windows overlap
  NextWindows next_;
  const std::size_t rows_;  // of windows; columns are the axis after it
  const std::vector<std::size_t> tasks_, loops_;
  const std::size_t lanes_;
  std::vector<Index> point_;
  const Pool pool_;
};

}  // namespace

void build_pointwise(GroupKernel& kernel, const GroupDomain& of, const Schedule& schedule) {
  if (kernel.group().domain.elements() == 0) return;
  Pointwise(kernel, of, schedule).emit();
}

}  // namespace fusejit::scheduler
