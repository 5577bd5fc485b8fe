// conv2d_weight_grad: a tile of weights (channels x vectors of outputs) stays in registers while a block of pixels
// passes; partial sums of image blocks are added in a fixed order (docs/kernel-ir.md, worked kernel (g)).
#include <algorithm>

#include "ir/base/check.h"
#include "scheduler/lower/anchors.h"
#include "scheduler/lower/group_kernel.h"
#include "scheduler/lower/split.h"
#include "scheduler/lower/tile.h"

namespace fusejit::scheduler {

using ir::Arg;
using ir::Binding;
using ir::CompareKind;
using ir::Index;
using ir::KernelBuilder;
using ir::MemKind;

namespace {

constexpr std::int64_t kLeastPixels = 96;  // of a block

class WeightGradient {
 public:
  WeightGradient(GroupKernel& kernel, const ir::Node& node)
      : kernel_(kernel),
        builder_(kernel.builder()),
        graph_(kernel.graph()),
        lanes_(kernel.lanes()),
        problem_(weight_grad_problem(graph_, node)) {
    vectors_ = problem_.outputs > lanes_ &&
                       (problem_.groups == 1 || problem_.outputs % lanes_ != 0 || problem_.outputs % (2 * lanes_) == 0)
                   ? 2
                   : 1;
    block_ = vectors_ * lanes_;
    blocks_ = (problem_.outputs + block_ - 1) / block_;
    const Target& target = kernel.context().target;
    most_ = std::min(vector_registers(target) - 2 - vectors_, 14 * vectors_) / vectors_;
    parts_ = split(problem_.images, (target.tasks + blocks_ * problem_.groups - 1) / (blocks_ * problem_.groups));
    choose_blocks(target);
  }

  void emit() {
    std::vector<std::int64_t> dims{parts_.chunks,           blocks_,           problem_.rows.kernel,
                                   problem_.columns.kernel, problem_.channels, block_};
    if (problem_.groups > 1) dims.insert(dims.begin() + 1, problem_.groups);
    work_ = builder_.work(problem_.compute, dims);
    parallel(builder_, parts_.chunks, [&](Index part) {
      part_ = part;
      parallel(builder_, problem_.groups, [&](Index group) {
        group_ = group;
        parallel(builder_, blocks_, [&](Index block) {
          output_block_ = block;
          clear();
          over_passes([&] { serial(builder_, row_blocks_.chunks, [&](Index b) { row_block_ = b, weights(); }); });
        });
      });
    });
    builder_.next_phase();
    add_parts();
  }

 private:
  // What passes by a tile before the next one has its turn: rows whose pixels, of both operands, stay in half of L1, or
  // several images where one is small. Enough that reading and writing the tile is little beside it.
  void choose_blocks(const Target& target) {
    const std::int64_t row_bytes =
        (problem_.columns.in * problem_.rows.stride * problem_.channels + problem_.columns.out * block_) * 4;
    const std::int64_t for_l1 = target.l1_bytes / 2 / row_bytes, for_l2 = target.l2_bytes / 2 / row_bytes;
    const std::int64_t enough = (kLeastPixels + problem_.columns.out - 1) / problem_.columns.out;
    const std::int64_t rows = std::max<std::int64_t>(1, std::max(for_l1, std::min(enough, for_l2)));
    row_blocks_ = split(problem_.rows.out, (problem_.rows.out + rows - 1) / rows);
    if (row_blocks_.chunks > 1) return;
    images_a_pass_ = std::min(parts_.chunk, std::min(enough, for_l2) / std::max<std::int64_t>(problem_.rows.out, 1));
    while (images_a_pass_ > 1 && parts_.chunk % images_a_pass_ != 0) --images_a_pass_;
    images_a_pass_ = std::max<std::int64_t>(images_a_pass_, 1);
  }

  void over_passes(const std::function<void()>& body) {
    if (images_a_pass_ == 1) return loop_chunk(builder_, parts_, part_, [&](Index n) { image_ = n, body(); });
    serial(builder_, parts_.chunk / images_a_pass_, [&](Index pass) {
      first_image_ = part_ * parts_.chunk + pass * images_a_pass_;
      body();
    });
  }
  void over_images(const std::function<void()>& body) {
    if (images_a_pass_ == 1) return body();
    std::vector<Index> high{first_image_ + Index(images_a_pass_)};
    if (!parts_.even()) high.push_back(Index(problem_.images));
    builder_.loop({first_image_}, high, Binding::none, [&](Index n) { image_ = n, body(); });
  }

  // Both operands of the pixel that takes this one's place in the next block.
  void prefetch_next(const Index& p, const Index& h, const Index& q, const Index& w, const Index& channel, int width) {
    const bool rows = row_blocks_.chunks > 1;
    const Index n = image_ + Index(rows ? 0 : images_a_pass_), ahead = rows ? row_blocks_.chunk : 0;
    const Index k = group_ * problem_.outputs + output_block_ * block_, first = group_ * problem_.channels + channel;
    over_vectors([&](Index j) { kernel_.prefetch(problem_.dy, {n, k + j * lanes_, p + ahead, q}); });
    for (const Index& c : {first, first + Index(width - 1)})
      kernel_.prefetch(problem_.x, {n, c, h + ahead * problem_.rows.stride, w});
  }

  void over_vectors(const std::function<void(Index)>& body) { unrolled(builder_, vectors_, body); }
  void over_lanes(const std::function<void()>& body) {
    builder_.loop(Index(0), Index(lanes_), Binding::vector, [&](Index lane) { lane_ = lane, body(); });
  }
  std::vector<Index> part_index(const Index& part, const Index& r, const Index& s, const Index& c,
                                const Index& j) const {
    return part_index_of(part, r, s, c, j * lanes_ + lane_);
  }
  std::vector<Index> part_index_of(const Index& part, const Index& r, const Index& s, const Index& c,
                                   const Index& k) const {
    std::vector<Index> index{part, output_block_, r, s, c, k};
    if (problem_.groups > 1) index.insert(index.begin() + 1, group_);
    return index;
  }

  void clear() {
    serial(builder_, problem_.rows.kernel, [&](Index r) {
      serial(builder_, problem_.columns.kernel, [&](Index s) {
        serial(builder_, problem_.channels, [&](Index c) {
          over_vectors([&](Index j) {
            over_lanes([&] {
              builder_.store(work_, part_index(part_, r, s, c, j), KernelBuilder::literal(0, problem_.compute));
            });
          });
        });
      });
    });
  }

  // Every tile of weights against this block of pixels. With few channels the taps of a row share a tile.
  void weights() {
    serial(builder_, problem_.rows.kernel, [&](Index r) {
      if (problem_.channels < 8) {
        std::vector<std::pair<Index, Index>> all;
        for (std::int64_t s = 0; s < problem_.columns.kernel; ++s) {
          for (std::int64_t c = 0; c < problem_.channels; ++c) all.push_back({Index(s), Index(c)});
        }
        for (std::size_t first = 0; first < all.size(); first += static_cast<std::size_t>(most_)) {
          const std::size_t last = std::min(all.size(), first + static_cast<std::size_t>(most_));
          listed_tile(
              r, {all.begin() + static_cast<std::ptrdiff_t>(first), all.begin() + static_cast<std::ptrdiff_t>(last)});
        }
        return;
      }
      serial(builder_, problem_.columns.kernel, [&](Index s) {
        const std::int64_t tiles = (problem_.channels + most_ - 1) / most_;
        std::int64_t width = (problem_.channels + tiles - 1) / tiles;
        while (width > 4 && problem_.channels % width != 0 && problem_.channels % (width - 1) == 0) --width;
        serial(builder_, problem_.channels / width,
               [&](Index t) { channel_tile(r, s, t * width, static_cast<int>(width)); });
        if (problem_.channels % width != 0) {
          channel_tile(r, s, Index(problem_.channels / width * width), static_cast<int>(problem_.channels % width));
        }
      });
    });
  }

  // Rows of the block for which tap r reads inside.
  void over_rows(const Index& r, const std::function<void(Index p, Index h)>& body) {
    over_images([&] { rows_of_image(r, body); });
  }
  void rows_of_image(const Index& r, const std::function<void(Index p, Index h)>& body) {
    const auto step = [&](Index p) { body(p, problem_.rows.input(p, r)); };
    const Index first = row_block_ * row_blocks_.chunk, end = first + Index(row_blocks_.chunk);
    if (problem_.rows.inside() && row_blocks_.even()) return builder_.loop(first, end, Binding::none, step);
    builder_.loop(first, end, Binding::none, [&](Index p) {
      std::vector<ir::Compare> inside;
      if (!row_blocks_.even()) inside.push_back(compare(p, CompareKind::lt, problem_.rows.out));
      if (!problem_.rows.inside()) {
        for (const ir::Compare& c : within(problem_.rows.input(p, r), problem_.rows.in)) inside.push_back(c);
      }
      builder_.when(inside, [&] { step(p); });
    });
  }

  void load_outputs(const Index& p, const Index& q, ir::MemId to) {
    over_vectors([&](Index j) {
      const Index k = output_block_ * block_ + j * lanes_ + lane_;
      const auto load = [&] {
        return kernel_.expression().nested([&] {
          return kernel_.expression().value(problem_.dy, {image_, group_ * problem_.outputs + k, p, q});
        });
      };
      const Arg value = problem_.outputs % block_ == 0
                            ? load()
                            : value_or_zero(builder_, k, problem_.outputs, problem_.compute, load);
      builder_.store(to, {j}, value);
    });
  }

  void accumulate(ir::MemId acc, const Index& i, ir::MemId outputs, Arg x) {
    over_vectors([&](Index j) {
      const Arg d = builder_.load(outputs, {j}), old = builder_.load(acc, {i, j});
      builder_.store(acc, {i, j}, kernel_.multiply_add(x, d, old, problem_.compute));
    });
  }

  Arg input(const Index& c, const Index& h, const Index& w) {
    return kernel_.expression().nested([&] {
      return kernel_.expression().value(problem_.x, {image_, group_ * problem_.channels + c, h, w});
    });
  }

  void channel_tile(const Index& r, const Index& s, const Index& channel, int width) {
    over_lanes([&] {
      const ir::MemId acc = builder_.local(MemKind::register_local, problem_.compute, {width, vectors_});
      const auto each = [&](const std::function<void(Index, Index)>& body) {
        unrolled(builder_, width, [&](Index i) { over_vectors([&](Index j) { body(i, j); }); });
      };
      each([&](Index i, Index j) {
        builder_.store(acc, {i, j}, builder_.load(work_, part_index(part_, r, s, channel + i, j)));
      });
      over_rows(r, [&](const Index& p, const Index& h) {
        const TapRange range = covering_outputs(problem_.columns, s);
        builder_.loop(range.low, range.high, Binding::none, [&](Index q) {
          const ir::MemId outputs = builder_.local(MemKind::register_local, problem_.compute, {vectors_});
          load_outputs(p, q, outputs);
          unrolled(builder_, width,
                   [&](Index i) { accumulate(acc, i, outputs, input(channel + i, h, problem_.columns.input(q, s))); });
          prefetch_next(p, h, q, problem_.columns.input(q, s), channel, width);
        });
      });
      each([&](Index i, Index j) {
        builder_.store(work_, part_index(part_, r, s, channel + i, j), builder_.load(acc, {i, j}));
      });
    });
  }

  // A tile over listed (tap, channel) pairs of one row of taps; a tap outside the image adds nothing.
  void listed_tile(const Index& r, const std::vector<std::pair<Index, Index>>& pairs) {
    over_lanes([&] {
      const ir::MemId acc = builder_.local(MemKind::register_local, problem_.compute,
                                           {static_cast<std::int64_t>(pairs.size()), vectors_});
      const auto each = [&](const std::function<void(Index, const std::pair<Index, Index>&, Index)>& body) {
        for (std::size_t i = 0; i < pairs.size(); ++i)
          over_vectors([&](Index j) { body(Index(static_cast<std::int64_t>(i)), pairs[i], j); });
      };
      each([&](Index i, const auto& pair, Index j) {
        builder_.store(acc, {i, j}, builder_.load(work_, part_index(part_, r, pair.first, pair.second, j)));
      });
      over_rows(r, [&](const Index& p, const Index& h) {
        builder_.loop(Index(0), Index(problem_.columns.out), Binding::none, [&](Index q) {
          const ir::MemId outputs = builder_.local(MemKind::register_local, problem_.compute, {vectors_});
          load_outputs(p, q, outputs);
          for (std::size_t i = 0; i < pairs.size(); ++i) {
            const Index w = problem_.columns.input(q, pairs[i].first);
            const auto add = [&] {
              accumulate(acc, Index(static_cast<std::int64_t>(i)), outputs, input(pairs[i].second, h, w));
            };
            problem_.columns.inside() ? add() : builder_.when(within(w, problem_.columns.in), add);
          }
        });
      });
      each([&](Index i, const auto& pair, Index j) {
        builder_.store(work_, part_index(part_, r, pair.first, pair.second, j), builder_.load(acc, {i, j}));
      });
    });
  }

  // Second phase: parts in ascending order; what the group stores is computed from the finished gradient. Lanes run
  // over input channels, which lie close together in weights and optimiser state; lanes over outputs would be rows
  // apart.
  void add_parts() {
    const auto of_group = [&](Index group) {
      group_ = group;
      problem_.channels < lanes_ ? add_parts_by_output() : add_parts_by_channel();
    };
    // Of a loop over groups with idle lanes it would not be provable that each output has one writer.
    if (problem_.outputs % block_ == 0) return parallel(builder_, problem_.groups, of_group);
    for (std::int64_t g = 0; g < problem_.groups; ++g) {
      if (g > 0) builder_.next_phase();
      of_group(Index(g));
    }
  }

  void add_parts_by_channel() {
    const Split vectors =
        split((problem_.channels + lanes_ - 1) / lanes_, (kernel_.context().target.tasks + blocks_ - 1) / blocks_);
    parallel(builder_, blocks_, [&](Index block) {
      output_block_ = block;
      parallel(builder_, vectors.chunks, [&](Index chunk) {
        loop_chunk(builder_, vectors, chunk,
                   [&](Index vector) { serial(builder_, block_, [&](Index k) { finish_channels(k, vector); }); });
      });
    });
  }

  void finish_channels(const Index& k, const Index& vector) {
    const auto every_tap = [&] {
      over_taps([&](Index r, Index s) {
        over_lanes([&] {
          const Index c = vector * lanes_ + lane_;
          const auto body = [&] { finish(r, s, c, k); };
          problem_.channels % lanes_ == 0 ? body()
                                          : builder_.when({compare(c, CompareKind::lt, problem_.channels)}, body);
        });
      });
    };
    if (problem_.outputs % block_ == 0) return every_tap();
    builder_.when({compare(output_block_ * block_ + k, CompareKind::lt, problem_.outputs)}, every_tap);
  }

  void add_parts_by_output() {
    parallel(builder_, blocks_, [&](Index block) {
      output_block_ = block;
      const Split channels = split(problem_.channels, (kernel_.context().target.tasks + blocks_ - 1) / blocks_);
      parallel(builder_, channels.chunks, [&](Index chunk) {
        loop_chunk(builder_, channels, chunk, [&](Index c) {
          over_taps([&](Index r, Index s) {
            over_vectors([&](Index j) { over_lanes([&] { finish_output(r, s, c, j * lanes_ + lane_); }); });
          });
        });
      });
    });
  }

  void finish_output(const Index& r, const Index& s, const Index& c, const Index& k) {
    const auto body = [&] { finish(r, s, c, k); };
    if (problem_.outputs % block_ == 0) return body();
    const bool single = problem_.outputs == 1;  // `==` pins the lane, so that one writer is provable
    builder_.when({compare(output_block_ * block_ + k, single ? CompareKind::eq : CompareKind::lt,
                           single ? 0 : problem_.outputs)},
                  body);
  }

  void over_taps(const std::function<void(Index r, Index s)>& body) {
    serial(builder_, problem_.rows.kernel,
           [&](Index r) { serial(builder_, problem_.columns.kernel, [&](Index s) { body(r, s); }); });
  }

  // `k`: output within the block.
  void finish(const Index& r, const Index& s, const Index& c, const Index& k) {
    const std::vector<ir::ValueId> sum = builder_.reduce(
        {Index(0)}, {Index(parts_.chunks)}, Binding::none, {ir::Combiner::add}, {problem_.compute},
        [&](Index part) { return std::vector<Arg>{builder_.load(work_, part_index_of(part, r, s, c, k))}; });
    kernel_.move_to_dims({group_ * problem_.outputs + output_block_ * block_ + k, c, r, s});
    kernel_.store_anchor(sum[0]);
  }

  GroupKernel& kernel_;
  KernelBuilder& builder_;
  const ir::Graph& graph_;
  const int lanes_;
  const WeightGradProblem problem_;
  std::int64_t block_ = 1, blocks_ = 1;  // of outputs
  int vectors_ = 1, most_ = 1;
  Split parts_, row_blocks_;
  std::int64_t images_a_pass_ = 1;
  Index first_image_ = 0;
  ir::MemId work_ = -1;
  Index part_ = 0, group_ = 0, output_block_ = 0, image_ = 0, row_block_ = 0, lane_ = 0;
};

}  // namespace

LoweredGroup lower_weight_grad(const LowerContext& context, const Group& group) {
  const ir::Node& node = *context.graph.value(group.anchor);
  const std::int64_t groups = node.attrs.integer("groups"), outputs = node.type.shape[0] / groups;
  const int most = vector_lanes(context.target, compute_type(node.type.dtype) == DType::f64);
  GroupKernel kernel(context, group, false, groups == 1 ? 0 : lanes_in_group(groups, outputs, most));
  LoweredGroup lowered;
  if (run_lanes_along_groups(groups, outputs)) {
    emit_weight_grad_along_groups(kernel, node);
  } else {
    WeightGradient(kernel, node).emit();
  }
  lowered.kernels.push_back(std::move(kernel).finish());
  return lowered;
}

}  // namespace fusejit::scheduler
