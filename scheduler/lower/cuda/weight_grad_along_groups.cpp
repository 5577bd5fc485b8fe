// conv2d_weight_grad on CUDA of groups with too few outputs for vectors (depthwise): a thread holds some taps of one
// vector of groups while the rows of its share pass; threads of a block meet in trees, parts of the grid are joined as
// everywhere (parts.h).
#include "scheduler/lower/cuda/lower.h"
#include "scheduler/lower/cuda/parts.h"
#include "scheduler/lower/cuda/threads.h"
#include "scheduler/lower/split.h"

namespace fusejit::scheduler::cuda {

using ir::Arg;
using ir::Binding;
using ir::CompareKind;
using ir::Index;
using ir::KernelBuilder;
using ir::MemKind;
using ir::Op;

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
        compute_(compute_type(node.type.dtype)),
        groups_(node.attrs.integer("groups")) {
    const ir::Graph& graph = kernel.graph();
    x_ = graph.index_of(node.operands[0].value.get()), dy_ = graph.index_of(node.operands[1].value.get());
    const Shape &in = graph.value(x_).type().shape, &out = graph.value(dy_).type().shape, &weight = node.type.shape;
    images_ = in[0], outputs_ = out[1] / groups_, channels_ = weight[1];
    rows_ = convolution_window(node, 0, in[2], out[2], weight[2]);
    columns_ = convolution_window(node, 1, in[3], out[3], weight[3]);
    taps_ = weight[2] * weight[3];
    vectors_ = std::min(kVectors, (groups_ + lanes - 1) / lanes);
    blocks_ = (groups_ + vectors_ * lanes - 1) / (vectors_ * lanes);
  }

  void emit() {
    const std::int64_t tiles = (taps_ + kTaps - 1) / kTaps, apart = outputs_ * channels_;
    const std::int64_t rows = std::max<std::int64_t>(1, images_ * rows_.out);
    shares_ = share(rows, floor_power_of_two(std::min(kBlock / vectors_, rows)), blocks_ * apart * tiles, kLeastRows);
    work_ = builder_.work(compute_, {shares_.parts, apart, taps_, blocks_ * vectors_ * lanes_});
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
      return decode(element, {rows_.kernel, columns_.kernel, groups_, apart});
    };
    JoiningSums joining{taps_ * groups_ * apart, shares_.parts, compute_, {}, {}};
    joining.load = [&](const Index& part, const Index& element) {
      const std::vector<Index> i = at(element);
      return builder_.load(work_, {part, i[3], i[0] * columns_.kernel + i[1], i[2]});
    };
    joining.done = [&](const Index& element, const Arg& sum) {
      const std::vector<Index> i = at(element);
      kernel_.move_to_dims({i[2] * outputs_ + i[3] / channels_, i[3] % channels_, i[0], i[1]});
      kernel_.expression().nested([&] {
        kernel_.expression().bind(kernel_.group().anchor, kernel_.here(), sum);
        kernel_.store_all();
      });
    };
    join_sums(kernel_, joining);
  }

 private:
  void tile(const Index& part, std::int64_t first) {
    const std::int64_t count = std::min(kTaps, taps_ - first);
    const auto state = [&](Index thread) {
      const ir::MemId acc = builder_.local(MemKind::register_local, compute_, {count}, 0);
      if (images_ > 0) {
        each_share(builder_, shares_, part, thread, [&](Index item) {
          const std::vector<Index> at = decode(item, {images_, rows_.out});
          serial(builder_, columns_.out, [&](Index q) { pixel(acc, at[0], at[1], q, first, count); });
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
                                       std::vector(n, ir::Combiner::add), std::vector(n, compute_), state);
      joined.assign(ids.begin(), ids.end());
    }
    for (std::int64_t i = 0; i < count; ++i) {
      builder_.store(work_, {part, apart_, Index(first + i), group_}, joined[static_cast<std::size_t>(i)]);
    }
  }

  void pixel(ir::MemId acc, const Index& n, const Index& p, const Index& q, std::int64_t first, std::int64_t count) {
    const Index output = apart_ / channels_, channel = apart_ % channels_;
    kernel_.expression().nested([&] {
      const Arg d = real_or_zero(dy_, {n, group_ * outputs_ + output, p, q});
      for (std::int64_t i = 0; i < count; ++i) {
        const std::int64_t tap = first + i;
        const Index h = rows_.input(p, tap / columns_.kernel), w = columns_.input(q, tap % columns_.kernel);
        std::vector<ir::Compare> inside;
        if (!rows_.inside()) inside = within(h, rows_.in);
        if (!columns_.inside()) {
          for (const ir::Compare& c : within(w, columns_.in)) inside.push_back(c);
        }
        const auto add = [&] {
          const Arg x = real_or_zero(x_, {n, group_ * channels_ + channel, h, w});
          builder_.store(acc, {Index(i)}, builder_.def(Op::fma, {x, d, Arg(builder_.load(acc, {Index(i)}))}, compute_));
        };
        inside.empty() ? add() : builder_.when(inside, add);
      }
    });
  }

  // 0 beyond the last group.
  Arg real_or_zero(int node, const LogicalIndex& at) {
    const auto load = [&] { return kernel_.expression().nested([&] { return kernel_.expression().value(node, at); }); };
    if (groups_ % (vectors_ * lanes_) == 0) return load();
    return builder_.choose(
        {compare(group_, CompareKind::lt, groups_)}, {compute_}, [&] { return std::vector<Arg>{load()}; },
        [&] { return std::vector<Arg>{KernelBuilder::literal(0, compute_)}; })[0];
  }

  GroupKernel& kernel_;
  KernelBuilder& builder_;
  const std::int64_t lanes_;
  const DType compute_;
  const std::int64_t groups_;
  int x_ = -1, dy_ = -1;
  std::int64_t images_ = 1, outputs_ = 1, channels_ = 1;  // outputs and channels of a group
  std::int64_t taps_ = 1, vectors_ = 1, blocks_ = 1;
  Window rows_, columns_;
  Shares shares_;
  ir::MemId work_ = -1;
  Index apart_ = 0, group_ = 0;
};

}  // namespace

void emit_weight_grad_along_groups(GroupKernel& kernel, const ir::Node& node, std::int64_t lanes) {
  Gradient(kernel, node, lanes).emit();
}

}  // namespace fusejit::scheduler::cuda
