// What the cost model reads off a kernel (kernel-ir.md §9).
#pragma once

#include "ir/kernel/kernel.h"

namespace fusejit::ir {

// From the first to the last index of a memory's last dim.
struct Columns {
  std::int64_t low = 0, high = -1;
  bool meet(const Columns& other) const { return low <= other.high && other.low <= high; }
};
struct MemoryTraffic {
  MemId memory;
  int phase;
  std::int64_t read_bytes;  // distinct
  std::int64_t written_bytes;
  Columns read = {}, written = {};
};
struct KernelCost {
  std::vector<MemoryTraffic> traffic;  // buffers and work; locals count nothing
  double flop = 0;
  std::int64_t scratch_bytes = 0;  // live at once, per task
  std::int64_t work_bytes = 0;
  std::int64_t statements = 0;      // after unrolling
  int vector_registers = 0;         // most of any innermost loop
  std::vector<std::int64_t> tasks;  // per phase
};
KernelCost cost(const Kernel& kernel);
// Parts of it.
double flop(const Kernel& kernel);
std::vector<MemoryTraffic> traffic(const Kernel& kernel);

}  // namespace fusejit::ir
