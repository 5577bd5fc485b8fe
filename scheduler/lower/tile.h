// Register tiles: convolutions (forward and input gradient) and matrix products as one problem.
//
//   out[n, p, q, k] = sum over taps (r, s) and channels c of input(n, h(p, r), w(q, s), c) * weight[k / B][r][s][c][k %
//   B]
//
// A tile holds `pixels` neighbouring q and `vectors` vectors of k in registers over the whole sum; weights are packed
// beforehand in blocks of B = vectors * lanes outputs. See docs/kernel-ir.md, worked kernel (f).
#pragma once

#include <functional>

#include "scheduler/lower/group_kernel.h"
#include "scheduler/lower/window.h"

namespace fusejit::scheduler {

struct TileShape {
  int pixels = 14;
  int vectors = 2;
};

struct TileProblem {
  std::int64_t images = 1, outputs = 1, channels = 1;  // extents of n, k, c
  Window rows, columns;                                // p and q with their taps
  DType compute = DType::f32;
  // Input element at (n, h, w, c) in the compute type; h and w are inside.
  std::function<ir::Arg(const ir::Index& n, const ir::Index& h, const ir::Index& w, const ir::Index& c)> input;
  // Points the kernel at output element (n, p, q, k).
  std::function<void(const ir::Index& n, const ir::Index& p, const ir::Index& q, const ir::Index& k)> move_to;
  // Element of the weight for output k, tap (r, s), channel c, as an expression of the graph.
  std::function<ir::Arg(Expression& expression, const ir::Index& k, const ir::Index& r, const ir::Index& s,
                        const ir::Index& c)>
      weight;
  bool channels_adjoin =
      false;  // in memory the weights of one output lie together, those of one channel are rows apart
};

// Tile for this many columns and outputs: from the registers and FMA ports of the target.
TileShape choose_tile(const Target& target, std::int64_t columns, std::int64_t outputs, int lanes);

// Physical extents of the packed weights: [blocks, R, S, C, vectors * lanes].
std::vector<std::int64_t> packed_dims(const TileProblem& problem, const TileShape& tile, int lanes);

// The kernel that packs the weights into value `packed`.
LoweredKernel lower_packing(const LowerContext& context, const TileProblem& problem, const TileShape& tile, int lanes,
                            int packed, const std::string& name);

// One phase of the anchor's kernel: every tile of the problem, with the group's stores and reductions as epilogue.
void emit_tiles(GroupKernel& kernel, const TileProblem& problem, const TileShape& tile, ir::MemId packed);

}  // namespace fusejit::scheduler
