// Kernel -> x86 machine code through LLVM ORC; pure functions, safe from several threads. LLVM headers stay in .cpp
// files.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "codegen/compiled_kernel.h"
#include "codegen/x86/machine.h"
#include "fusejit/target.h"
#include "ir/kernel/kernel.h"

namespace fusejit::codegen::x86 {

// Compiles for the kernel's isa: load(generate_object(...)). DeviceError if this processor cannot run it or LLVM fails.
std::shared_ptr<const CompiledKernel> compile(const ir::Kernel& kernel, const Target& target);

// A compiled kernel as bytes, for a cache on disk: what load() needs besides the object.
struct ObjectCode {
  std::string name;
  Isa isa = Isa::x86_v2;
  std::string object;               // ELF
  std::vector<std::int64_t> tasks;  // by phase
  std::int64_t scratch_bytes = 0;
  std::int64_t work_bytes = 0;
  std::int64_t ir_instructions = 0;
};
ObjectCode generate_object(const ir::Kernel& kernel, const Target& target, Effort effort = Effort::full);
// Links it into this process: tens of microseconds. DeviceError as above, also for bytes that are no object.
std::shared_ptr<const CompiledKernel> load(const ObjectCode& code);

// True if this processor can execute code for `isa`.
bool host_supports(Isa isa);
// What people look at: LLVM IR text, and assembly with the kernel's text as comment.
std::string llvm_text(const ir::Kernel& kernel, const Target& target);
std::string assembly(const ir::Kernel& kernel, const Target& target);

// Kernels for other tools. The functions of one are SYMBOL_phase_0, SYMBOL_phase_1, …; symbols differ.
struct SymbolKernel {
  const ir::Kernel* kernel;
  std::string symbol;
};
enum class Form : std::uint8_t { llvm, assembly, object };
// One module of all of them as LLVM IR, assembly or an ELF object, for a target of this instruction set. What LLVM's
// own tools need to know (triple, layout of data, processor) is in it.
std::string module_of(std::span<const SymbolKernel> kernels, const Target& target, Form form);
// False once the process is ending, in the destructors of static objects and in threads that outlive main(): LLVM is
// not there any more. compile() throws UnsupportedError then.
bool can_generate();
// What besides fusejit decides about the code of a kernel, for cache keys: LLVM's version and its library's build id.
std::string toolchain();

}  // namespace fusejit::codegen::x86
