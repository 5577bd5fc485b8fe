#include <llvm/IR/Module.h>
#include <llvm/IR/Verifier.h>
#include <llvm/Support/raw_ostream.h>

#include <string>

#include "codegen/x86/emit/emit.h"
#include "codegen/x86/emit/emitter.h"
#include "ir/base/check.h"

namespace fusejit::codegen::x86 {
namespace {

llvm::Function* phase_function(llvm::Module& module, const MachineFacts& facts, const std::string& name) {
  llvm::LLVMContext& context = module.getContext();
  llvm::Type* pointer = llvm::PointerType::get(context, 0);
  llvm::Type* task = llvm::Type::getInt64Ty(context);
  auto* type =
      llvm::FunctionType::get(llvm::Type::getVoidTy(context), {pointer, pointer, task, pointer, pointer}, false);
  auto* function = llvm::Function::Create(type, llvm::Function::ExternalLinkage, name, module);
  function->addFnAttr(llvm::Attribute::NoUnwind);
  function->addFnAttr("target-cpu", facts.cpu);
  if (!facts.features.empty()) function->addFnAttr("target-features", facts.features);
  function->addFnAttr("prefer-vector-width", facts.vector_width);
  return function;
}

}  // namespace

void emit_module(llvm::Module& module, const ir::Kernel& kernel, const Arena& arena, const LaneFacts& lanes,
                 const MachineFacts& facts, const std::string& symbol) {
  for (std::size_t i = 0; i < kernel.phases.size(); ++i) {
    llvm::Function* function = phase_function(module, facts, phase_symbol(symbol, i));
    llvm::BasicBlock* entry = llvm::BasicBlock::Create(module.getContext(), "entry", function);
    Emitter emitter(kernel, lanes, arena, facts, function, entry);
    emit_phase(emitter, kernel.phases[i]);
  }
}

void check_module(const llvm::Module& module, const ir::Kernel& kernel) {
  std::string problems;
  llvm::raw_string_ostream stream(problems);
  if (llvm::verifyModule(module, &stream)) {
    throw InternalError("LLVM IR of kernel is not valid: " + problems + "\n" + ir::print(kernel));
  }
}

std::string phase_symbol(const std::string& symbol, std::size_t phase) {
  return fmt::format("{}{}phase_{}", symbol, symbol.empty() ? "" : "_", phase);
}

}  // namespace fusejit::codegen::x86
