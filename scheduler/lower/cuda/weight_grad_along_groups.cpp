// conv2d_weight_grad on CUDA of groups with too few outputs for vectors (depthwise): a thread holds some taps of one
// vector of groups while the rows of its share pass; threads of a block meet in trees, parts of the grid are joined as
// everywhere (parts.h).
#include "scheduler/lower/anchors.h"
#include "scheduler/lower/cuda/lower.h"
#include "scheduler/lower/cuda/parts.h"
#include "scheduler/lower/cuda/threads.h"
#include "scheduler/lower/split.h"

namespace fusejit::scheduler::cuda {

using ir::Arg;
using ir::Binding;
using ir::Index;
using ir::KernelBuilder;
using ir::MemKind;

namespace {

constexpr std::int64_t kVectors = 16;   // of groups, side by side
constexpr std::int64_t kTaps = 9;       // of a thread
constexpr std::int64_t kLeastRows = 2;  // of a thread, before its part is split further

class Gradient {
 public:
  Gradient(GroupKernel& kernel, const ir::Node& node, std::int64_t lanes)
      : kernel_(kernel),
        builder_(kernel.builder()),
        lanes_(lanes),
        problem_(weight_grad_problem(kernel.graph(), node)) {
    taps_ = problem_.rows.kernel * problem_.columns.kernel;
    vectors_ = std::min(kVectors, (problem_.groups + lanes - 1) / lanes);
    blocks_ = (problem_.groups + vectors_ * lanes - 1) / (vectors_ * lanes);
  }

  void emit() {
    const std::int64_t tiles = (taps_ + kTaps - 1) / kTaps, apart = problem_.outputs * problem_.channels;
    const std::int64_t rows = std::max<std::int64_t>(1, problem_.images * problem_.rows.out);
    shares_ = share(rows, floor_power_of_two(std::min(kBlock / vectors_, rows)), blocks_ * apart * tiles, kLeastRows);
    work_ = builder_.work(problem_.compute, {shares_.parts, apart, taps_, blocks_ * vectors_ * lanes_});
    along(builder_, apart, Binding::grid_z, [&](Index z) {
      apart_ = z;
      along(builder_, shares_.parts, Binding::grid_y, [&](Index part) {
        builder_.loop(Index(0), Index(blocks_), Binding::grid_x, [&](Index block) {
          along(builder_, vectors_, Binding::block_x, [&](Index vector) {
            each_lane(builder_, lanes_, [&](Index lane) {
              group_ = (block * vectors_ + vector) * lanes_ + lane;
              for (std::int64_t first = 0; first < taps_; first += kTaps) tile(part, first);
            });
          });
        });
      });
    });
    const auto at = [&](const Index& element) {
      return decode(element, {problem_.rows.kernel, problem_.columns.kernel, problem_.groups, apart});
    };
    JoiningSums joining{taps_ * problem_.groups * apart, shares_.parts, problem_.compute, {}, {}};
    joining.load = [&](const Index& part, const Index& element) {
      const std::vector<Index> i = at(element);
      return builder_.load(work_, {part, i[3], i[0] * problem_.columns.kernel + i[1], i[2]});
    };
    joining.done = [&](const Index& element, const Arg& sum) {
      const std::vector<Index> i = at(element);
      kernel_.move_to_dims({i[2] * problem_.outputs + i[3] / problem_.channels, i[3] % problem_.channels, i[0], i[1]});
      kernel_.store_anchor(sum);
    };
    join_sums(kernel_, joining);
  }

 private:
  void tile(const Index& part, std::int64_t first) {
    const std::int64_t count = std::min(kTaps, taps_ - first);
    const auto state = [&](Index thread) {
      const ir::MemId acc = builder_.local(MemKind::register_local, problem_.compute, {count}, 0);
      if (problem_.images > 0) {
        each_share(builder_, shares_, part, thread, [&](Index item) {
          const std::vector<Index> at = decode(item, {problem_.images, problem_.rows.out});
          serial(builder_, problem_.columns.out, [&](Index q) { pixel(acc, at[0], at[1], q, first, count); });
        });
      }
      std::vector<Arg> sums;
      for (std::int64_t i = 0; i < count; ++i) sums.push_back(builder_.load(acc, {Index(i)}));
      return sums;
    };
    std::vector<Arg> joined;
    if (shares_.threads == 1) {
      joined = state(Index(0));
    } else {
      const auto n = static_cast<std::size_t>(count);
      const auto ids = builder_.reduce({Index(0)}, {Index(shares_.threads)}, Binding::block_y,
                                       std::vector(n, ir::Combiner::add), std::vector(n, problem_.compute), state);
      joined.assign(ids.begin(), ids.end());
    }
    for (std::int64_t i = 0; i < count; ++i) {
      builder_.store(work_, {part, apart_, Index(first + i), group_}, joined[static_cast<std::size_t>(i)]);
    }
  }

  void pixel(ir::MemId acc, const Index& n, const Index& p, const Index& q, std::int64_t first, std::int64_t count) {
    const Index output = apart_ / problem_.channels, channel = apart_ % problem_.channels;
    kernel_.expression().nested([&] {
      const Arg d = real_or_zero(problem_.dy, {n, group_ * problem_.outputs + output, p, q});
      for (std::int64_t i = 0; i < count; ++i) {
        const std::int64_t tap = first + i;
        const Index h = problem_.rows.input(p, tap / problem_.columns.kernel),
                    w = problem_.columns.input(q, tap % problem_.columns.kernel);
        std::vector<ir::Compare> inside;
        if (!problem_.rows.inside()) inside = within(h, problem_.rows.in);
        if (!problem_.columns.inside()) {
          for (const ir::Compare& c : within(w, problem_.columns.in)) inside.push_back(c);
        }
        const auto add = [&] {
          const Arg x = real_or_zero(problem_.x, {n, group_ * problem_.channels + channel, h, w});
          builder_.store(acc, {Index(i)}, kernel_.multiply_add(x, d, builder_.load(acc, {Index(i)}), problem_.compute));
        };
        inside.empty() ? add() : builder_.when(inside, add);
      }
    });
  }

  // 0 beyond the last group.
  Arg real_or_zero(int node, const LogicalIndex& at) {
    const auto load = [&] { return kernel_.expression().nested([&] { return kernel_.expression().value(node, at); }); };
    return problem_.groups % (vectors_ * lanes_) == 0
               ? load()
               : value_or_zero(builder_, group_, problem_.groups, problem_.compute, load);
  }

  GroupKernel& kernel_;
  KernelBuilder& builder_;
  const std::int64_t lanes_;
  const WeightGradProblem problem_;
  std::int64_t taps_ = 1, vectors_ = 1, blocks_ = 1;
  Shares shares_;
  ir::MemId work_ = -1;
  Index apart_ = 0, group_ = 0;
};

}  // namespace

void emit_weight_grad_along_groups(GroupKernel& kernel, const ir::Node& node, std::int64_t lanes) {
  Gradient(kernel, node, lanes).emit();
}

}  // namespace fusejit::scheduler::cuda
