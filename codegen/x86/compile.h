// Kernel -> x86 machine code through LLVM ORC; pure functions, safe from several threads. LLVM headers stay in the .cpp.
#pragma once

#include <memory>
#include <string>

#include "codegen/compiled_kernel.h"
#include "fusejit/target.h"
#include "ir/kernel/kernel.h"

namespace fusejit::codegen::x86 {

// Compiles for the kernel's isa. DeviceError if this processor cannot run it or LLVM fails.
std::shared_ptr<const CompiledKernel> compile(const ir::Kernel& kernel, const Target& target);
// True if this processor can execute code for `isa`.
bool host_supports(Isa isa);
// What people look at: LLVM IR text, and assembly with the kernel's text as comment.
std::string llvm_text(const ir::Kernel& kernel, const Target& target);
std::string assembly(const ir::Kernel& kernel, const Target& target);
// The toolchain part of cache keys: LLVM version and emitter version.
std::string toolchain();

}  // namespace fusejit::codegen::x86
