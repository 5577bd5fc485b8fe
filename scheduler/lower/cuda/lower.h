// Loop nests of groups for CUDA: grid, block and lane loops (docs/kernel-ir.md §5) instead of tasks and vectors.
//
// `lanes` elements are one access of a thread. Whether every access may be that wide is known when the nest is written
// (KernelBuilder::vectors_aligned), so lowering tries the widest first.
#pragma once

#include "scheduler/lower/group_kernel.h"
#include "scheduler/lower/tile.h"

namespace fusejit::scheduler::cuda {

void emit_pointwise(GroupKernel& kernel, std::int64_t lanes);
void emit_reduction(GroupKernel& kernel, std::int64_t lanes);

// A register tile a thread: pixels times one vector; `vectors` of a weight block. `packed` is -1 where weights are read
// as they are.
TileShape choose_tile(const GroupKernel& kernel, const TileProblem& problem);
// The threads of a tile read weights as they lie in memory by whole accesses side by side: there is nothing to pack.
bool reads_whole_vectors(const TileProblem& problem, const TileShape& tile, std::int64_t lanes);
void emit_tiles(GroupKernel& kernel, const std::vector<TiledProblem>& problems, std::int64_t lanes);
void emit_weight_grad(GroupKernel& kernel, const ir::Node& node, std::int64_t lanes);
void emit_weight_grad_along_groups(GroupKernel& kernel, const ir::Node& node, std::int64_t lanes);

}  // namespace fusejit::scheduler::cuda
