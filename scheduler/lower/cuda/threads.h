// How CUDA kernels spread work: one item a thread, items in blocks of threads, blocks along the grid.
#pragma once

#include <functional>
#include <vector>

#include "ir/kernel/builder.h"
#include "scheduler/lower/split.h"

namespace fusejit::scheduler::cuda {

inline constexpr std::int64_t kBlock = 256;       // threads of a block
inline constexpr std::int64_t kWarp = 32;         // threads that load together
inline constexpr std::int64_t kBlocks = 1024;     // blocks that keep every multiprocessor busy to the end
inline constexpr std::int64_t kAccessBytes = 16;  // widest access of a thread

// body(item) once for each of `items`, in the order of memory along the threads: so many in a block, or kBlock.
void each_thread(ir::KernelBuilder& builder, std::int64_t items, std::int64_t threads,
                 const std::function<void(ir::Index)>& body);
void each_thread(ir::KernelBuilder& builder, std::int64_t items, const std::function<void(ir::Index)>& body);

// The row-major position `item` as one index per extent.
std::vector<ir::Index> decode(const ir::Index& item, const std::vector<std::int64_t>& extents);

// Largest power of two that is at most n; n >= 1.
std::int64_t floor_power_of_two(std::int64_t n);

// body(lane) in a vector loop of `lanes`; one lane is no loop.
void each_lane(ir::KernelBuilder& builder, std::int64_t lanes, const std::function<void(ir::Index)>& body);
// `extent` blocks along an axis of the grid, or threads along one of the block; one is no loop.
void along(ir::KernelBuilder& builder, std::int64_t extent, ir::Binding binding,
           const std::function<void(ir::Index)>& body);

// Items spread over the parts of a grid and to the threads of a block: thread t of part p takes p * chunk + t,
// p * chunk + t + threads, …
struct Partition {
  std::int64_t items = 1, threads = 1, chunk = 1, parts = 1;
  bool last_apart = true;  // the last part, where it is shorter, is written by itself, else each round is tested
  bool even() const { return items == chunk * parts; }
};
// In about `parts` parts, equal ones where there are some.
Partition partition(std::int64_t items, std::int64_t threads, std::int64_t parts);
// The same, of which the last may be shorter.
Partition uneven_partition(std::int64_t items, std::int64_t threads, std::int64_t parts);
// As many parts as make `most` blocks of the `blocks` that there are anyway, each thread with `steps` or more.
Partition partition_for_device(std::int64_t items, std::int64_t threads, std::int64_t blocks, std::int64_t steps,
                               std::int64_t most = kBlocks);
void each_item(ir::KernelBuilder& builder, const Partition& spread, const ir::Index& part, const ir::Index& thread,
               const std::function<void(ir::Index item)>& body);
// The same; after() after each block of so many of a thread's items, and after its last.
void each_item_in_blocks(ir::KernelBuilder& builder, const Partition& spread, const ir::Index& part,
                         const ir::Index& thread, std::int64_t block, const std::function<void(ir::Index item)>& body,
                         const std::function<void()>& after);
// Items of one thread times `weight`, in f64.
ir::Arg item_count(ir::KernelBuilder& builder, const Partition& spread, const ir::Index& part, const ir::Index& thread,
                   std::int64_t weight);

}  // namespace fusejit::scheduler::cuda
