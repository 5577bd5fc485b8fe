// Kernels as a target's generators write them: what source and asm print, and the figures of show --compile.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "fusejit/target.h"
#include "ir/kernel/kernel.h"

namespace fusejit::tools {

struct CodeFigures {
  std::int64_t ir_instructions = 0;  // x86: of LLVM
  std::int64_t code_bytes = 0;       // machine code; cuda: the cubin
  double compile_milliseconds = 0;
  // cuda: of the launch that needs most
  int registers = 0;
  std::int64_t spill_bytes = 0;
  std::int64_t shared_bytes = 0;
};

// Whether this build and machine have the target's generator.
bool can_compile(const Target& target);
// Throws UnsupportedError where this build or machine lacks the generator.
CodeFigures measure_code(const ir::Kernel& kernel, const Target& target);
// UserError for "cuda" and "llvm" where the target has the other.
void check_stage(std::string_view stage, const Target& target);
// "llvm" (x86), "cuda" (CUDA C++) or "asm" (assembly; cuda: PTX). UserError for a stage that the target does not have.
std::string code_text(std::string_view stage, const ir::Kernel& kernel, const Target& target);
// Kernels under their symbols (functions SYMBOL_phase_0, …) as one module for an x86 target.
struct SymbolKernel {
  const ir::Kernel* kernel;
  std::string symbol;
};
enum class ModuleForm : std::uint8_t { llvm, assembly, object };
std::string x86_module(ModuleForm form, const std::vector<SymbolKernel>& kernels, const Target& target);

}  // namespace fusejit::tools
