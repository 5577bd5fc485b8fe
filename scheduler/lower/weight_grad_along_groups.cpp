// conv2d_weight_grad of groups with too few outputs for vectors (depthwise): lanes run along the groups, and a tile is
// every tap of as many groups, or what fits into the registers. It stays there while the pixels of a part pass, so x
// and dy are read once; parts are added in ascending order.
#include <algorithm>

#include "scheduler/lower/anchors.h"
#include "scheduler/lower/group_kernel.h"
#include "scheduler/lower/split.h"
#include "scheduler/lower/window.h"

namespace fusejit::scheduler {

using ir::Arg;
using ir::Binding;
using ir::CompareKind;
using ir::Index;
using ir::KernelBuilder;
using ir::MemKind;

namespace {

constexpr std::int64_t kCopiedColumns = 16;  // more at the edges are a loop that asks at every tap

struct Tap {
  std::int64_t r = 0, s = 0;
};
using Taps = std::vector<Tap>;

class Gradient {
 public:
  Gradient(GroupKernel& kernel, const ir::Node& node)
      : kernel_(kernel),
        builder_(kernel.builder()),
        lanes_(kernel.lanes()),
        problem_(weight_grad_problem(kernel.graph(), node)) {
    const Target& target = kernel.context().target;
    const std::int64_t registers = vector_registers(target) - 1, taps = problem_.rows.kernel * problem_.columns.kernel;
    vectors_ = problem_.groups % (2 * lanes_) == 0 && 2 * (taps + 1) <= registers ? 2 : 1;
    block_ = vectors_ * lanes_;
    blocks_ = (problem_.groups + block_ - 1) / block_;
    const std::int64_t most = std::max<std::int64_t>(1, (registers - vectors_) / vectors_);
    for (std::int64_t r = 0; r < problem_.rows.kernel; ++r) {
      for (std::int64_t s = 0; s < problem_.columns.kernel; ++s) {
        if (tiles_.empty() || static_cast<std::int64_t>(tiles_.back().size()) == most) tiles_.emplace_back();
        tiles_.back().push_back({r, s});
      }
    }
    const std::int64_t wanted = (target.tasks + blocks_ - 1) / blocks_;
    images_ = split(problem_.images, wanted);
    row_blocks_ = split(problem_.rows.out, images_.chunks == 0 ? 1 : (wanted + images_.chunks - 1) / images_.chunks);
  }

  void emit() {
    work_ = builder_.work(problem_.compute, {images_.chunks * row_blocks_.chunks, problem_.outputs, problem_.channels,
                                             problem_.rows.kernel, problem_.columns.kernel, blocks_ * block_});
    parallel(builder_, images_.chunks, [&](Index part) {
      image_part_ = part;
      parallel(builder_, row_blocks_.chunks, [&](Index rows) {
        row_block_ = rows;
        parallel(builder_, blocks_, [&](Index block) {
          group_block_ = block;
          serial(builder_, problem_.outputs, [&](Index k) {
            serial(builder_, problem_.channels, [&](Index c) {
              output_ = k, channel_ = c;
              for (const Taps& taps : tiles_) over_lanes([&] { tile(taps); });
            });
          });
        });
      });
    });
    builder_.next_phase();
    add_parts();
  }

 private:
  void over_lanes(const std::function<void()>& body) {
    builder_.loop(Index(0), Index(lanes_), Binding::vector, [&](Index lane) { lane_ = lane, body(); });
  }
  Index group(const Index& j) const { return group_block_ * block_ + j * lanes_ + lane_; }
  std::vector<Index> work_index(const Index& part, const Index& r, const Index& s, const Index& j) const {
    return {part, output_, channel_, r, s, group(j)};
  }

  void tile(const Taps& taps) {
    const auto count = static_cast<std::int64_t>(taps.size());
    acc_ = builder_.local(MemKind::register_local, problem_.compute, {count, vectors_}, 0);
    loop_chunk(builder_, images_, image_part_, [&](Index n) {
      image_ = n;
      loop_chunk(builder_, row_blocks_, row_block_, [&](Index p) { row(p, taps); });
    });
    const Index part = image_part_ * row_blocks_.chunks + row_block_;
    for (std::int64_t i = 0; i < count; ++i) {
      const Tap& tap = taps[static_cast<std::size_t>(i)];
      unrolled(builder_, vectors_, [&](Index j) {
        builder_.store(work_, work_index(part, tap.r, tap.s, j), builder_.load(acc_, {Index(i), j}));
      });
    }
  }

  // A row that every tap reads inside the image, or one row of taps after the other.
  void row(const Index& p, const Taps& taps) {
    row_ = p;
    const Index first = problem_.rows.input(p, taps.front().r), last = problem_.rows.input(p, taps.back().r);
    std::vector<ir::Compare> inside = within(first, problem_.rows.in);
    for (const ir::Compare& c : within(last, problem_.rows.in)) inside.push_back(c);
    const auto at_edge = [&] {
      for (std::size_t begin = 0, end = 0; begin < taps.size(); begin = end) {
        Taps of_row;
        for (end = begin; end < taps.size() && taps[end].r == taps[begin].r; ++end) of_row.push_back(taps[end]);
        builder_.when(within(problem_.rows.input(p, taps[begin].r), problem_.rows.in),
                      [&] { pixels(of_row, static_cast<std::int64_t>(begin)); });
      }
    };
    if (problem_.rows.inside()) return pixels(taps, 0);
    if (taps.front().r == taps.back().r) return at_edge();
    builder_.when(
        inside, [&] { pixels(taps, 0); }, at_edge);
  }

  // Every pixel of the row for these taps, the first of which is number `first` of the tile.
  void pixels(const Taps& taps, std::int64_t first) {
    const Window& w = problem_.columns;
    const std::int64_t reach = (w.kernel - 1) * w.dilation - w.low_padding;
    const std::int64_t begin = std::clamp<std::int64_t>((w.low_padding + w.stride - 1) / w.stride, 0, w.out);
    const std::int64_t end = w.in > reach ? std::clamp((w.in - 1 - reach) / w.stride + 1, begin, w.out) : begin;
    if (w.out - (end - begin) > kCopiedColumns) {
      return builder_.loop(Index(0), Index(w.out), Binding::none, [&](Index q) { pixel(q, taps, first, false); });
    }
    for (std::int64_t q = 0; q < begin; ++q) pixel(Index(q), taps, first, false);
    if (end > begin)
      builder_.loop(Index(begin), Index(end), Binding::none, [&](Index q) { pixel(q, taps, first, true); });
    for (std::int64_t q = end; q < w.out; ++q) pixel(Index(q), taps, first, false);
  }

  void pixel(const Index& q, const Taps& taps, std::int64_t first, bool inside) {
    kernel_.expression().nested([&] {
      std::vector<Arg> d;
      for (int j = 0; j < vectors_; ++j) {
        d.push_back(real_or_zero(j, [&](const Index& g) {
          return kernel_.expression().value(problem_.dy, {image_, g * problem_.outputs + output_, row_, q});
        }));
      }
      for (std::size_t i = 0; i < taps.size(); ++i) {
        const Index h = problem_.rows.input(row_, taps[i].r), w = problem_.columns.input(q, taps[i].s);
        if (w.is_constant() && (w.constant() < 0 || w.constant() >= problem_.columns.in)) continue;
        const auto add = [&] {
          for (int j = 0; j < vectors_; ++j) {
            const Arg x = real_or_zero(j, [&](const Index& g) {
              return kernel_.expression().value(problem_.x, {image_, g * problem_.channels + channel_, h, w});
            });
            accumulate({Index(first + static_cast<std::int64_t>(i)), Index(j)}, x, d[static_cast<std::size_t>(j)]);
          }
        };
        inside || w.is_constant() ? add() : builder_.when(within(w, problem_.columns.in), add);
      }
    });
  }

  Arg real_or_zero(int j, const std::function<Arg(const Index& g)>& load) {
    const Index g = group(j);
    const auto real = [&] { return kernel_.expression().nested([&] { return load(g); }); };
    return problem_.groups % block_ == 0 ? real() : value_or_zero(builder_, g, problem_.groups, problem_.compute, real);
  }

  void accumulate(const std::vector<Index>& at, Arg x, Arg d) {
    builder_.store(acc_, at, kernel_.multiply_add(x, d, builder_.load(acc_, at), problem_.compute));
  }

  // Second phase: what the group stores is computed from the finished gradient.
  void add_parts() {
    parallel(builder_, blocks_, [&](Index block) {
      group_block_ = block;
      serial(builder_, problem_.outputs, [&](Index k) {
        serial(builder_, problem_.channels, [&](Index c) {
          output_ = k, channel_ = c;
          serial(builder_, problem_.rows.kernel, [&](Index r) {
            serial(builder_, problem_.columns.kernel, [&](Index s) {
              unrolled(builder_, vectors_, [&](Index j) { over_lanes([&] { finish(r, s, j); }); });
            });
          });
        });
      });
    });
  }

  void finish(const Index& r, const Index& s, const Index& j) {
    const auto body = [&] {
      const std::vector<ir::ValueId> sum = builder_.reduce(
          {Index(0)}, {Index(images_.chunks * row_blocks_.chunks)}, Binding::none, {ir::Combiner::add},
          {problem_.compute},
          [&](Index part) { return std::vector<Arg>{builder_.load(work_, work_index(part, r, s, j))}; });
      kernel_.move_to_dims({group(j) * problem_.outputs + output_, channel_, r, s});
      kernel_.store_anchor(sum[0]);
    };
    problem_.groups % block_ == 0 ? body() : builder_.when({compare(group(j), CompareKind::lt, problem_.groups)}, body);
  }

  GroupKernel& kernel_;
  KernelBuilder& builder_;
  const int lanes_;
  const WeightGradProblem problem_;
  int vectors_ = 1;
  std::int64_t block_ = 1, blocks_ = 1;  // of groups
  std::vector<Taps> tiles_;
  Split images_, row_blocks_;
  ir::MemId work_ = -1, acc_ = -1;
  Index image_part_ = 0, row_block_ = 0, group_block_ = 0, output_ = 0, channel_ = 0, image_ = 0, row_ = 0, lane_ = 0;
};

}  // namespace

void emit_weight_grad_along_groups(GroupKernel& kernel, const ir::Node& node) { Gradient(kernel, node).emit(); }

}  // namespace fusejit::scheduler
