// conv2d_weight_grad on CUDA: a thread holds `width` channels times one vector of outputs for one tap while the rows of
// its part pass; a second phase adds the parts in a fixed order and computes what the group stores.
#include "ir/base/check.h"
#include "scheduler/lower/anchors.h"
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

namespace {

constexpr std::int64_t kWidth = 8;      // channels of a thread
constexpr std::int64_t kVectors = 16;   // of outputs, side by side
constexpr std::int64_t kLeastRows = 4;  // of a part

class WeightGradient {
 public:
  WeightGradient(GroupKernel& kernel, const ir::Node& node, std::int64_t lanes)
      : kernel_(kernel),
        builder_(kernel.builder()),
        lanes_(lanes),
        problem_(weight_grad_problem(kernel.graph(), node)) {
    vectors_ = std::min(kVectors, (problem_.outputs + lanes - 1) / lanes);
    blocks_ = (problem_.outputs + vectors_ * lanes - 1) / (vectors_ * lanes);
    width_ = divisor_up_to(problem_.channels, kWidth);
  }

  void emit() {
    const std::int64_t items =
        problem_.groups * problem_.rows.kernel * problem_.columns.kernel * (problem_.channels / width_);
    // With groups no thread without an item: the quotient that is the group would lose its bound.
    const std::int64_t most = std::min(items, kBlock / vectors_);
    const std::int64_t threads = problem_.groups > 1 ? divisor_up_to(items, most) : most;
    const std::int64_t groups = (items + threads - 1) / threads;
    shares_ = share(problem_.images * problem_.rows.out, 1, groups * blocks_, kLeastRows);
    work_ = builder_.work(problem_.compute,
                          work_index(shares_.parts, problem_.groups, problem_.rows.kernel, problem_.columns.kernel,
                                     problem_.channels, blocks_ * vectors_ * lanes_));
    along(builder_, shares_.parts, Binding::grid_z, [&](Index part) {
      along(builder_, blocks_, Binding::grid_y, [&](Index block) {
        builder_.loop(Index(0), Index(groups), Binding::grid_x, [&](Index group) {
          along(builder_, threads, Binding::block_y, [&](Index thread) {
            along(builder_, vectors_, Binding::block_x, [&](Index vector) {
              const Index item = group * threads + thread;
              const auto body = [&] {
                const std::vector<Index> at = decode(
                    item, {problem_.groups, problem_.rows.kernel, problem_.columns.kernel, problem_.channels / width_});
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
      return decode(element, {problem_.rows.kernel, problem_.columns.kernel, problem_.channels,
                              problem_.groups * problem_.outputs});
    };
    JoiningSums joining{
        problem_.groups * problem_.rows.kernel * problem_.columns.kernel * problem_.channels * problem_.outputs,
        shares_.parts,
        problem_.compute,
        {},
        {}};
    joining.load = [&](const Index& part, const Index& element) {
      const std::vector<Index> i = at(element);
      return builder_.load(work_, work_index(part, i[3] / problem_.outputs, i[0], i[1], i[2], i[3] % problem_.outputs));
    };
    joining.done = [&](const Index& element, const Arg& sum) {
      const std::vector<Index> i = at(element);
      kernel_.move_to_dims({i[3], i[2], i[0], i[1]});
      kernel_.store_anchor(sum);
    };
    join_sums(kernel_, joining);
  }

 private:
  template <class T>
  std::vector<T> work_index(T part, T group, T r, T s, T c, T k) const {
    std::vector<T> index{part, r, s, c, k};
    if (problem_.groups > 1) index.insert(index.begin() + 1, group);
    return index;
  }

  void tile(const Index& part, const Index& r, const Index& s, const Index& channel, const Index& k) {
    const ir::MemId acc = builder_.local(MemKind::register_local, problem_.compute, {width_}, 0);
    each_share(builder_, shares_, part, Index(0), [&](Index row) {
      const std::vector<Index> at = decode(row, {problem_.images, problem_.rows.out});
      const Index h = problem_.rows.input(at[1], r);
      const auto pass = [&] {
        serial(builder_, problem_.columns.out, [&](Index q) {
          const Index w = problem_.columns.input(q, s);
          const auto pixel = [&] { add_pixel(acc, at[0], at[1], q, h, w, channel, k); };
          problem_.columns.inside() ? pixel() : builder_.when(within(w, problem_.columns.in), pixel);
        });
      };
      problem_.rows.inside() ? pass() : builder_.when(within(h, problem_.rows.in), pass);
    });
    unrolled(builder_, width_, [&](Index i) {
      builder_.store(work_, work_index(part, group_, r, s, channel + i, k), builder_.load(acc, {i}));
    });
  }

  void add_pixel(ir::MemId acc, const Index& n, const Index& p, const Index& q, const Index& h, const Index& w,
                 const Index& channel, const Index& k) {
    Expression& expression = kernel_.expression();
    expression.nested([&] {
      const Arg d = output_gradient({n, group_ * problem_.outputs + k, p, q}, k);
      unrolled(builder_, width_, [&](Index i) {
        expression.nested([&] {
          const Arg x = expression.value(problem_.x, {n, group_ * problem_.channels + channel + i, h, w});
          builder_.store(acc, {i}, kernel_.multiply_add(x, d, builder_.load(acc, {i}), problem_.compute));
        });
      });
    });
  }

  // 0 beyond the last output.
  Arg output_gradient(const LogicalIndex& at, const Index& k) {
    const auto load = [&] {
      return kernel_.expression().nested([&] { return kernel_.expression().value(problem_.dy, at); });
    };
    return problem_.outputs % (vectors_ * lanes_) == 0
               ? load()
               : value_or_zero(builder_, k, problem_.outputs, problem_.compute, load);
  }

  GroupKernel& kernel_;
  KernelBuilder& builder_;
  const std::int64_t lanes_;
  const WeightGradProblem problem_;
  std::int64_t vectors_ = 1, blocks_ = 1, width_ = 1;
  Index group_ = 0;
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
