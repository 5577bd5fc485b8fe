// Register tiles: convolutions (forward and input gradient) and matrix products as one problem.
//
//   out[n, p, q, k] = sum over taps (r, s) and channels c of input(n, h(p, r), w(q, s), c) * weight[k / B][r][s][c][k %
//   B]
//
// A tile holds `pixels` neighbouring q and `vectors` vectors of k in registers over the whole sum; weights are packed
// beforehand in blocks of B = vectors * lanes outputs. See docs/kernel-ir.md, worked kernel (f).
//
// Convolutions in groups are such problems side by side, k and c counted within a group g. Lanes run along the outputs
// of a group, one group after the other, or, where groups have too few outputs for a vector (depthwise), along the
// groups: then a vector of outputs reads a vector of inputs.
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
  std::int64_t images = 1, groups = 1, outputs = 1, channels = 1;  // extents of n, g, k, c
  bool lanes_along_groups = false;
  bool is_batch = false;  // groups are products of a batch: each has a matrix of its own, and dims of their own
  Window rows, columns;   // p and q with their taps
  DType compute = DType::f32;
  // Input element at (n, h, w, g, c) in the compute type; h and w are inside.
  std::function<ir::Arg(const ir::Index& n, const ir::Index& h, const ir::Index& w, const ir::Index& g,
                        const ir::Index& c)>
      input;
  // A hint that this input element is needed soon.
  std::function<void(const ir::Index& n, const ir::Index& h, const ir::Index& w, const ir::Index& g,
                     const ir::Index& c)>
      prefetch;
  // Points the kernel at output element (n, p, q, g, k).
  std::function<void(const ir::Index& n, const ir::Index& p, const ir::Index& q, const ir::Index& g,
                     const ir::Index& k)>
      move_to;
  // Element of the weight for output k of group g, tap (r, s), channel c, as an expression of the graph.
  std::function<ir::Arg(Expression& expression, const ir::Index& g, const ir::Index& k, const ir::Index& r,
                        const ir::Index& s, const ir::Index& c)>
      weight;
  // In memory the weights of one output lie together, those of one channel are rows apart; or those of one channel do.
  bool channels_adjoin = false, outputs_adjoin = false;

  // Lanes and vectors run along one of (g, k); the other is a loop.
  std::int64_t across() const { return lanes_along_groups ? groups : outputs; }
  std::int64_t apart() const { return lanes_along_groups ? outputs : groups; }
  // The outputs of one group lie behind those of another: no lane may go beyond them.
  bool groups_adjoin() const { return groups > 1 && !lanes_along_groups && !is_batch; }
  const ir::Index& group(const ir::Index& apart, const ir::Index& across) const {
    return lanes_along_groups ? across : apart;
  }
  const ir::Index& output(const ir::Index& apart, const ir::Index& across) const {
    return lanes_along_groups ? apart : across;
  }
};

// Too few outputs of a group for vectors of them.
bool run_lanes_along_groups(std::int64_t groups, std::int64_t outputs);
// Lanes along the outputs of a group where they divide them; `most` without groups and along them.
int lanes_in_group(std::int64_t groups, std::int64_t outputs, int most);

// Tile for the columns and outputs of the problem: from the registers and FMA ports of the target.
TileShape choose_tile(const Target& target, const TileProblem& problem, int lanes);

// Physical extents of the packed weights: [apart, blocks, R, S, C, vectors * lanes], without the first where it is 1.
std::vector<std::int64_t> packed_dims(const TileProblem& problem, const TileShape& tile, int lanes);
std::vector<ir::Index> packed_index(const TileProblem& problem, const ir::Index& apart, const ir::Index& block,
                                    const ir::Index& r, const ir::Index& s, const ir::Index& c, const ir::Index& k);

// The kernel that packs the weights into value `packed`.
LoweredKernel lower_packing(const LowerContext& context, const TileProblem& problem, const TileShape& tile, int lanes,
                            int packed, const std::string& name);

// A problem with what was chosen for it.
struct TiledProblem {
  TileProblem problem;
  TileShape tile;
  ir::MemId packed = -1;  // its weights; -1: read as they are, or none
};

// The anchor's kernel: a phase a problem, every tile with the group's stores and reductions as epilogue. The problems
// write disjoint elements of one result (the phases of a strided input gradient); their sums are one state, combined
// once in a last phase.
void emit_tiles(GroupKernel& kernel, const std::vector<TiledProblem>& problems);

// Outputs of one channel, over all problems.
std::int64_t pixels(const std::vector<TiledProblem>& problems);

}  // namespace fusejit::scheduler
