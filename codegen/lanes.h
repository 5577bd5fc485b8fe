// Which values of a kernel differ between the lanes of their vector loop, and how its locals are kept.
#pragma once

#include <vector>

#include "ir/kernel/kernel.h"

namespace fusejit::codegen {

struct LaneFacts {
  std::vector<bool> value;   // by ValueId: differs between lanes
  std::vector<bool> memory;  // by MemId: a register local inside a vector loop whose elements differ between lanes
  std::vector<int> rows;    // by MemId: register local outside vector loops whose last dim is the lane: its lanes, or 0
  std::vector<int> inside;  // by MemId: lanes of the vector loop that the local is declared in, or 0
  std::vector<bool> variable;  // by VarId: the variable of a vector loop
};

LaneFacts lane_facts(const ir::Kernel& kernel);

// True if the index names a lane variable or a value that differs between lanes.
bool varies(const LaneFacts& facts, const ir::Index& index);

// The register locals declared outside `block` that it stores to, each once, in order of first store.
std::vector<ir::MemId> stored_registers(const ir::Kernel& kernel, const ir::Block& block);

}  // namespace fusejit::codegen
