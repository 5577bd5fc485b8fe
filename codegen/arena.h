// Where scratch locals and work arrays stand: offsets in the worker's scratch arena and in the run's work memory.
#pragma once

#include <cstdint>
#include <vector>

#include "ir/kernel/kernel.h"

namespace fusejit::codegen {

struct Arena {
  std::vector<std::int64_t> offset;  // by MemId; -1: neither scratch nor work
  std::vector<std::int64_t> size;    // bytes, by MemId
  std::int64_t scratch_bytes = 0;
  std::int64_t work_bytes = 0;

  // Two scratch locals that never live at once may share bytes.
  bool overlap(ir::MemId a, ir::MemId b) const {
    return offset[a] < offset[b] + size[b] && offset[b] < offset[a] + size[a];
  }
};

// Scratch is a stack: a local begins where the locals alive at its declaration end, so disjoint blocks share memory.
Arena layout(const ir::Kernel& kernel);

}  // namespace fusejit::codegen
