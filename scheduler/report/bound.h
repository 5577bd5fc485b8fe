// What a plan moves at least: the judge of Plan::ledger_bytes.
//
// It counts what no grouping avoids while each anchor that runs as a tile (convolutions, matrix products) is a kernel
// of its own, between memory and memory, or both gradients that go over the same rows are one (fuse/gradients.h):
//   - every such kernel reads its operands, as far as it needs them, however often others do; of an image that is
//     computed it reads what that takes at least;
//   - what it reads was written once, and so is every result of the graph;
//   - what it computes and hands on to a kernel that cannot be its own is written once: where a sum over all of it
//     stands in between, as in batch norm, and then it is read once, or a pooling, or another anchor;
//   - parameters that no anchor reads are read once.
// Bytes are those of the dtypes in memory. Whatever is not certain counts nothing: elements outside of every window or
// slice, what gathers pick, what is computed from little where it is used.
#pragma once

#include <cstdint>
#include <vector>

#include "ir/graph.h"

namespace fusejit::scheduler {

// Of an optimised graph. `fixed` (make_plan.h): parameters that may be read before the first run.
std::int64_t least_bytes(const ir::Graph& graph, const std::vector<bool>& fixed);

}  // namespace fusejit::scheduler
