// Kernel -> functions of an LLVM module, one a phase (codegen/compiled_kernel.h has its signature).
#pragma once

#include <cstdint>
#include <string>

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
// "phase_0"; of a kernel with a symbol of its own "symbol_phase_0".
std::string phase_symbol(const std::string& symbol, std::size_t phase);
// Adds the kernel's functions to a module that has none of these names.
void emit_module(llvm::Module& module, const ir::Kernel& kernel, const Arena& arena, const LaneFacts& lanes,
                 const MachineFacts& facts, const std::string& symbol = {});
// Throws InternalError if LLVM says that the module is none; `kernel` was added last.
void check_module(const llvm::Module& module, const ir::Kernel& kernel);

}  // namespace fusejit::codegen::x86
