#include "tools/fusejit-dump/machine_code.h"

#include <algorithm>

#include "codegen/cuda/emit.h"
#include "codegen/cuda/nvrtc.h"
#include "ir/base/check.h"
#ifdef FUSEJIT_X86
#include "codegen/x86/compile.h"
#endif

namespace fusejit::tools {
namespace {

#ifdef FUSEJIT_X86
constexpr bool kHasX86 = true;
CodeFigures measure_x86(const ir::Kernel& kernel, const Target& target) {
  const auto compiled = codegen::x86::compile(kernel, target);
  return {compiled->ir_instructions, compiled->code_bytes, compiled->compile_milliseconds};
}
std::string x86_text(std::string_view stage, const ir::Kernel& kernel, const Target& target) {
  return stage == "llvm" ? codegen::x86::llvm_text(kernel, target) : codegen::x86::assembly(kernel, target);
}
std::string module_of(ModuleForm form, const std::vector<SymbolKernel>& kernels, const Target& target) {
  std::vector<codegen::x86::SymbolKernel> list;
  for (const SymbolKernel& one : kernels) list.push_back({one.kernel, one.symbol});
  return codegen::x86::module_of(list, target, static_cast<codegen::x86::Form>(form));
}
#else
constexpr bool kHasX86 = false;
[[noreturn]] void no_generator(const Target& target) {
  throw UnsupportedError("this build has no x86 code generator (FUSEJIT_X86=OFF); target " + target.str());
}
CodeFigures measure_x86(const ir::Kernel&, const Target& target) { no_generator(target); }
std::string x86_text(std::string_view, const ir::Kernel&, const Target& target) { no_generator(target); }
std::string module_of(ModuleForm, const std::vector<SymbolKernel>&, const Target& target) { no_generator(target); }
#endif

std::string cuda_program(const ir::Kernel& kernel) {
  const codegen::cuda::CudaSource source = codegen::cuda::emit(kernel);
  return codegen::cuda::program({&source, 1});
}

CodeFigures measure_cuda(const ir::Kernel& kernel, const Target& target) {
  const codegen::cuda::CudaBinary binary = codegen::cuda::compile(cuda_program(kernel), target.compute_capability);
  CodeFigures figures;
  figures.code_bytes = static_cast<std::int64_t>(binary.cubin.size());
  figures.compile_milliseconds = binary.compile_milliseconds;
  for (const codegen::cuda::Resources& entry : binary.entries) {
    figures.registers = std::max(figures.registers, entry.registers);
    figures.spill_bytes = std::max(figures.spill_bytes, entry.spill_bytes);
    figures.shared_bytes = std::max(figures.shared_bytes, entry.shared_bytes);
  }
  return figures;
}

}  // namespace

bool can_compile(const Target& target) {
  return target.isa == Isa::cuda ? codegen::cuda::nvrtc().available : kHasX86 && target.isa != Isa::any;
}

CodeFigures measure_code(const ir::Kernel& kernel, const Target& target) {
  return target.isa == Isa::cuda ? measure_cuda(kernel, target) : measure_x86(kernel, target);
}

void check_stage(std::string_view stage, const Target& target) {
  const bool cuda = target.isa == Isa::cuda;
  FJ_CHECK(stage != (cuda ? "llvm" : "cuda"), "target {} has no stage {}; it has {}", target.str(), stage,
           cuda ? "cuda" : "llvm");
}

std::string code_text(std::string_view stage, const ir::Kernel& kernel, const Target& target) {
  const bool cuda = target.isa == Isa::cuda;
  check_stage(stage, target);
  if (!cuda) return x86_text(stage, kernel, target);
  return stage == "cuda" ? codegen::cuda::emit(kernel).text
                         : codegen::cuda::compile_to_ptx(cuda_program(kernel), target.compute_capability);
}

std::string x86_module(ModuleForm form, const std::vector<SymbolKernel>& kernels, const Target& target) {
  return module_of(form, kernels, target);
}

}  // namespace fusejit::tools
