// Packing: the weights of a tile problem, laid out once so that the tile reads them line after line. Which loop is
// inner follows from how the weights lie: whole lines are read or written, whichever costs less.
#include <map>

#include "scheduler/lower/cuda/threads.h"
#include "scheduler/lower/split.h"
#include "scheduler/lower/tile.h"

namespace fusejit::scheduler {

using ir::Arg;
using ir::Binding;
using ir::CompareKind;
using ir::Index;
using ir::KernelBuilder;
using ir::MemKind;

std::vector<std::int64_t> packed_dims(const TileProblem& problem, const TileShape& tile, int lanes) {
  const std::int64_t block = tile.vectors * lanes;
  std::vector<std::int64_t> dims{(problem.across() + block - 1) / block, problem.rows.kernel, problem.columns.kernel,
                                 problem.channels, block};
  if (problem.apart() > 1) dims.insert(dims.begin(), problem.apart());
  return dims;
}

std::vector<Index> packed_index(const TileProblem& problem, const Index& apart, const Index& block, const Index& r,
                                const Index& s, const Index& c, const Index& k) {
  std::vector<Index> index{block, r, s, c, k};
  if (problem.apart() > 1) index.insert(index.begin(), apart);
  return index;
}

namespace {
constexpr std::int64_t kPackedRows = 16;  // read side by side: what a processor prefetches at once
}

LoweredKernel lower_packing(const LowerContext& context, const TileProblem& problem, const TileShape& tile, int lanes,
                            int packed, const std::string& name) {
  KernelBuilder builder(name, context.target.isa);
  LoweredKernel lowered;
  std::map<int, ir::MemId> buffers;
  ExpressionHooks hooks;
  hooks.is_stored = [&](int node) {
    return static_cast<bool>(context.grouping.stored[static_cast<std::size_t>(node)]);
  };
  hooks.varies_by_lane = [](const ir::Index&) { return false; };
  hooks.resolve = [](const Index& index) { return index; };
  hooks.ranges = [&builder](const ir::IndexAtom& atom) { return builder.range(atom); };
  hooks.load = [&](int node, const std::vector<Index>& physical, bool through_views) -> Arg {
    const auto [place, fresh] = buffers.try_emplace(node, -1);
    if (fresh) {
      const Type& type = context.graph.value(node).type();
      place->second =
          builder.buffer(MemKind::read, type.dtype, physical_dims(type), context.target.isa == Isa::cuda ? 64 : 0);
      lowered.values.push_back(node);
    }
    return builder.load(place->second, physical, through_views);
  };
  Expression expression(context.graph, builder, hooks);
  const std::vector<std::int64_t> all_dims = packed_dims(problem, tile, lanes);
  const std::vector<std::int64_t> dims(all_dims.end() - 5, all_dims.end());
  Index apart = 0;
  const auto element = [&](const Index& across, const Index& r, const Index& s, const Index& c) -> Arg {
    const auto real = [&] {
      return problem.weight(expression, problem.group(apart, across), problem.output(apart, across), r, s, c);
    };
    if (problem.across() % dims[4] == 0) return expression.nested(real);
    return value_or_zero(builder, across, problem.across(), problem.compute, [&] { return expression.nested(real); });
  };
  ir::MemId to = -1;
  // Buffers are declared by their first use, so the written one comes last.
  const auto store = [&](const Index& block, const Index& r, const Index& s, const Index& c, const Index& k) {
    const Arg value = element(block * dims[4] + k, r, s, c);
    if (to < 0) to = builder.buffer(MemKind::write, problem.compute, all_dims, 64);
    builder.store(to, packed_index(problem, apart, block, r, s, c, k), value);
  };
  const auto vectors = [&](const Index& block, const Index& r, const Index& s, const Index& c) {
    unrolled(builder, tile.vectors, [&](Index v) {
      builder.loop(Index(0), Index(lanes), Binding::vector,
                   [&](Index lane) { store(block, r, s, c, v * lanes + lane); });
    });
  };
  // A few rows of a matrix and one block after the other: as many streams of reads, and whole lines are written.
  const auto over_rows = [&] {
    const Split rows = split(dims[3], (dims[3] + kPackedRows - 1) / kPackedRows),
                blocks = split(dims[0], (context.target.tasks + rows.chunks - 1) / rows.chunks);
    parallel(builder, rows.chunks, [&](Index part) {
      parallel(builder, blocks.chunks, [&](Index group) {
        loop_chunk(builder, blocks, group,
                   [&](Index block) { loop_chunk(builder, rows, part, [&](Index c) { vectors(block, 0, 0, c); }); });
      });
    });
  };
  // Lanes along channels where those adjoin: whole lines are read, and what is written apart stays within a page.
  const auto over_channels = [&] {
    const Split vectors = split((dims[3] + lanes - 1) / lanes, (context.target.tasks + dims[0] - 1) / dims[0]);
    const auto column = [&](const Index& block, const Index& r, const Index& s, const Index& vector, const Index& k) {
      builder.loop(Index(0), Index(lanes), Binding::vector, [&](Index lane) {
        const Index c = vector * lanes + lane;
        if (dims[3] % lanes == 0) return store(block, r, s, c, k);
        builder.when({compare(c, CompareKind::lt, dims[3])}, [&] { store(block, r, s, c, k); });
      });
    };
    parallel(builder, dims[0], [&](Index block) {
      parallel(builder, vectors.chunks, [&](Index part) {
        serial(builder, dims[1], [&](Index r) {
          serial(builder, dims[2], [&](Index s) {
            loop_chunk(builder, vectors, part, [&](Index vector) {
              serial(builder, dims[4], [&](Index k) { column(block, r, s, vector, k); });
            });
          });
        });
      });
    });
  };
  const auto over_tasks = [&] {
    const std::int64_t per_block = dims[1] * dims[2] * dims[3];
    const Split channels = split(dims[3], per_block < 256 ? 1 : (context.target.tasks + dims[0] - 1) / dims[0]);
    parallel(builder, dims[0], [&](Index block) {
      parallel(builder, channels.chunks, [&](Index part) {
        serial(builder, dims[1], [&](Index r) {
          serial(builder, dims[2],
                 [&](Index s) { loop_chunk(builder, channels, part, [&](Index c) { vectors(block, r, s, c); }); });
        });
      });
    });
  };
  const auto over_groups = [&] {
    parallel(builder, problem.apart(), [&](Index outer) {
      apart = outer;
      over_tasks();
    });
  };
  if (context.target.isa == Isa::cuda) {
    // Channels of groups are a loop: in an index they stand beside the groups, and two bounds are not proven at once.
    const std::int64_t looped = problem.groups > 1 ? dims[3] : 1, channels = dims[3] / looped;
    cuda::along(builder, problem.apart(), Binding::grid_z, [&](Index outer) {
      apart = outer;
      cuda::along(builder, dims[0], Binding::grid_y, [&](Index block) {
        cuda::each_thread(builder, dims[1] * dims[2] * channels * dims[4], [&](Index item) {
          const std::vector<Index> at = cuda::decode(item, {dims[1], dims[2], channels, dims[4]});
          serial(builder, looped, [&](Index c) { store(block, at[0], at[1], at[2] + c, at[3]); });
        });
      });
    });
  } else if (problem.apart() > 1) {
    over_groups();
  } else if (problem.channels_adjoin && dims[3] >= lanes) {
    over_channels();
  } else if (dims[1] * dims[2] == 1 && dims[0] > 1 && dims[3] > kPackedRows) {
    over_rows();
  } else {
    over_tasks();
  }
  lowered.values.push_back(packed);
  lowered.kernel = context.finished.finish(std::move(builder));
  return lowered;
}

}  // namespace fusejit::scheduler
