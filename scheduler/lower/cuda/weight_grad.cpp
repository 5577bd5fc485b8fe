// conv2d_weight_grad on CUDA: a thread holds `width` channels times one vector of outputs for one tap while the rows of
// its part pass; a second phase adds the parts in a fixed order and computes what the group stores.
#include "ir/base/check.h"
#include "scheduler/lower/cuda/lower.h"
#include "scheduler/lower/cuda/parts.h"
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

constexpr std::int64_t kWidth = 8;      // channels of a thread
constexpr std::int64_t kVectors = 16;   // of outputs, side by side
constexpr std::int64_t kLeastRows = 4;  // of a part

class WeightGradient {
 public:
  WeightGradient(GroupKernel& kernel, const ir::Node& node, std::int64_t lanes)
      : kernel_(kernel), builder_(kernel.builder()), lanes_(lanes), compute_(compute_type(node.type.dtype)) {
    const ir::Graph& graph = kernel.graph();
    x_ = graph.index_of(node.operands[0].value.get()), dy_ = graph.index_of(node.operands[1].value.get());
    const Shape &in = graph.value(x_).type().shape, &out = graph.value(dy_).type().shape, &weight = node.type.shape;
    groups_ = node.attrs.integer("groups");
    images_ = in[0], channels_ = in[1] / groups_, outputs_ = out[1] / groups_;
    rows_ = convolution_window(node, 0, in[2], out[2], weight[2]);
    columns_ = convolution_window(node, 1, in[3], out[3], weight[3]);
    vectors_ = std::min(kVectors, (outputs_ + lanes - 1) / lanes);
    blocks_ = (outputs_ + vectors_ * lanes - 1) / (vectors_ * lanes);
    width_ = divisor_up_to(channels_, kWidth);
  }

  void emit() {
    const std::int64_t items = groups_ * rows_.kernel * columns_.kernel * (channels_ / width_);
    // With groups no thread without an item: the quotient that is the group would lose its bound.
    const std::int64_t most = std::min(items, kBlock / vectors_);
    const std::int64_t threads = groups_ > 1 ? divisor_up_to(items, most) : most;
    const std::int64_t groups = (items + threads - 1) / threads;
    shares_ = share(images_ * rows_.out, 1, groups * blocks_, kLeastRows);
    work_ = builder_.work(compute_, work_index(shares_.parts, groups_, rows_.kernel, columns_.kernel, channels_,
                                               blocks_ * vectors_ * lanes_));
    along(builder_, shares_.parts, Binding::grid_z, [&](Index part) {
      along(builder_, blocks_, Binding::grid_y, [&](Index block) {
        builder_.loop(Index(0), Index(groups), Binding::grid_x, [&](Index group) {
          along(builder_, threads, Binding::block_y, [&](Index thread) {
            along(builder_, vectors_, Binding::block_x, [&](Index vector) {
              const Index item = group * threads + thread;
              const auto body = [&] {
                const std::vector<Index> at =
                    decode(item, {groups_, rows_.kernel, columns_.kernel, channels_ / width_});
                group_ = at[0];
                each_lane(builder_, lanes_, [&](Index lane) {
                  tile(part, at[1], at[2], at[3] * width_, (block * vectors_ + vector) * lanes_ + lane);
                });
              };
              items % threads == 0 ? body() : builder_.when({compare(item, CompareKind::lt, items)}, body);
            });
          });
        });
      });
    });
    const auto at = [&](const Index& element) {
      return decode(element, {rows_.kernel, columns_.kernel, channels_, groups_ * outputs_});
    };
    JoiningSums joining{
        groups_ * rows_.kernel * columns_.kernel * channels_ * outputs_, shares_.parts, compute_, {}, {}};
    joining.load = [&](const Index& part, const Index& element) {
      const std::vector<Index> i = at(element);
      return builder_.load(work_, work_index(part, i[3] / outputs_, i[0], i[1], i[2], i[3] % outputs_));
    };
    joining.done = [&](const Index& element, const Arg& sum) {
      const std::vector<Index> i = at(element);
      kernel_.move_to_dims({i[3], i[2], i[0], i[1]});
      kernel_.expression().nested([&] {
        kernel_.expression().bind(kernel_.group().anchor, kernel_.here(), sum);
        kernel_.store_all();
      });
    };
    join_sums(kernel_, joining);
  }

 private:
  template <class T>
  std::vector<T> work_index(T part, T group, T r, T s, T c, T k) const {
    std::vector<T> index{part, r, s, c, k};
    if (groups_ > 1) index.insert(index.begin() + 1, group);
    return index;
  }

  void tile(const Index& part, const Index& r, const Index& s, const Index& channel, const Index& k) {
    const ir::MemId acc = builder_.local(MemKind::register_local, compute_, {width_}, 0);
    each_share(builder_, shares_, part, Index(0), [&](Index row) {
      const std::vector<Index> at = decode(row, {images_, rows_.out});
      const Index h = rows_.input(at[1], r);
      const auto pass = [&] {
        serial(builder_, columns_.out, [&](Index q) {
          const Index w = columns_.input(q, s);
          const auto pixel = [&] { add_pixel(acc, at[0], at[1], q, h, w, channel, k); };
          columns_.inside() ? pixel() : builder_.when(within(w, columns_.in), pixel);
        });
      };
      rows_.inside() ? pass() : builder_.when(within(h, rows_.in), pass);
    });
    unrolled(builder_, width_, [&](Index i) {
      builder_.store(work_, work_index(part, group_, r, s, channel + i, k), builder_.load(acc, {i}));
    });
  }

  void add_pixel(ir::MemId acc, const Index& n, const Index& p, const Index& q, const Index& h, const Index& w,
                 const Index& channel, const Index& k) {
    Expression& expression = kernel_.expression();
    expression.nested([&] {
      const Arg d = output_gradient({n, group_ * outputs_ + k, p, q}, k);
      unrolled(builder_, width_, [&](Index i) {
        expression.nested([&] {
          const Arg x = expression.value(x_, {n, group_ * channels_ + channel + i, h, w});
          builder_.store(acc, {i}, builder_.def(Op::fma, {x, d, Arg(builder_.load(acc, {i}))}, compute_));
        });
      });
    });
  }

  // 0 beyond the last output.
  Arg output_gradient(const LogicalIndex& at, const Index& k) {
    const auto load = [&] { return kernel_.expression().nested([&] { return kernel_.expression().value(dy_, at); }); };
    if (outputs_ % (vectors_ * lanes_) == 0) return load();
    return builder_.choose(
        {compare(k, CompareKind::lt, outputs_)}, {compute_}, [&] { return std::vector<Arg>{load()}; },
        [&] { return std::vector<Arg>{KernelBuilder::literal(0, compute_)}; })[0];
  }

  GroupKernel& kernel_;
  KernelBuilder& builder_;
  const std::int64_t lanes_;
  const DType compute_;
  int x_ = -1, dy_ = -1;
  std::int64_t images_ = 1, groups_ = 1, channels_ = 1, outputs_ = 1;  // channels and outputs of a group
  std::int64_t vectors_ = 1, blocks_ = 1, width_ = 1;
  Index group_ = 0;
  Window rows_, columns_;
  Shares shares_;
  ir::MemId work_ = -1;
};

}  // namespace

void emit_weight_grad(GroupKernel& kernel, const ir::Node& node, std::int64_t lanes) {
  const std::int64_t groups = node.attrs.integer("groups");
  if (run_lanes_along_groups(groups, node.type.shape[0] / groups)) {
    return emit_weight_grad_along_groups(kernel, node, lanes);
  }
  WeightGradient(kernel, node, lanes).emit();
}

}  // namespace fusejit::scheduler::cuda
