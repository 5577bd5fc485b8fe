// Kernel -> LLVM module: one function phase_i per phase (codegen/compiled_kernel.h has its signature).
#pragma once

#include <cstdint>

#include "codegen/arena.h"
#include "codegen/lanes.h"
#include "codegen/x86/machine.h"
#include "ir/kernel/kernel.h"

namespace llvm {
class Module;
}  // namespace llvm

namespace fusejit::codegen::x86 {

// Iterations of the parallel nest of a phase.
std::int64_t task_count(const ir::Phase& phase);
// Fills an empty module.
void emit_module(llvm::Module& module, const ir::Kernel& kernel, const Arena& arena, const LaneFacts& lanes,
                 const MachineFacts& facts);

}  // namespace fusejit::codegen::x86
