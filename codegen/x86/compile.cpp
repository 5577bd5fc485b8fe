#include "codegen/x86/compile.h"

#include <llvm/Config/llvm-config.h>
#include <llvm/IR/LLVMContext.h>
#include <llvm/IR/Module.h>
#include <llvm/Support/TargetSelect.h>
#include <llvm/Support/raw_ostream.h>

#include <chrono>

#include "codegen/x86/emit/emit.h"
#include "codegen/x86/llvm_use.h"
#include "codegen/x86/orc.h"
#include "ir/base/build_id.h"
#include "ir/base/check.h"

namespace fusejit::codegen::x86 {
namespace {

struct Emitted {
  LlvmOwner<llvm::LLVMContext> context;
  LlvmOwner<llvm::Module> module;
  Arena arena;
  const MachineFacts* facts;
};

double milliseconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
}

Isa isa_of(const ir::Kernel& kernel, const Target& target) { return kernel.isa == Isa::any ? target.isa : kernel.isa; }

Emitted emit(const ir::Kernel& kernel, const Target& target) {
  Emitted result;
  result.facts = &machine_facts(isa_of(kernel, target));
  const LaneFacts lanes = lane_facts(kernel);
  result.arena = layout(kernel);
  calling_llvm([&] {
    result.context = LlvmOwner(std::make_unique<llvm::LLVMContext>());
    result.module = LlvmOwner(std::make_unique<llvm::Module>(kernel.name, *result.context));
    emit_module(*result.module, kernel, result.arena, lanes, *result.facts);
    check_module(*result.module, kernel);
  });
  return result;
}

void check(const LlvmUse& use) {
  if (!use) throw UnsupportedError("the process is ending: no more x86 code is generated");
}

}  // namespace

ObjectCode generate_object(const ir::Kernel& kernel, const Target& target, Effort effort) {
  const LlvmUse use;
  check(use);
  Emitted emitted = emit(kernel, target);
  ObjectCode code;
  code.name = kernel.name;
  code.isa = isa_of(kernel, target);
  code.scratch_bytes = emitted.arena.scratch_bytes;
  code.work_bytes = emitted.arena.work_bytes;
  code.ir_instructions = static_cast<std::int64_t>(emitted.module->getInstructionCount());
  for (const ir::Phase& phase : kernel.phases) code.tasks.push_back(task_count(phase));
  code.object = generate(*emitted.module, *emitted.facts, /*assembly=*/false, effort);
  return code;
}

std::shared_ptr<const CompiledKernel> load(const ObjectCode& code) {
  if (!host_supports(code.isa))
    throw DeviceError(fmt::format("this processor cannot run {} code", fusejit::name(code.isa)));
  const LlvmUse use;
  check(use);
  const auto start = std::chrono::steady_clock::now();
  LinkedCode linked = link(code.object, code.tasks.size());
  auto result = std::make_shared<CompiledKernel>();
  result->name = code.name;
  result->scratch_bytes = code.scratch_bytes;
  result->work_bytes = code.work_bytes;
  result->ir_instructions = code.ir_instructions;
  for (std::size_t i = 0; i < code.tasks.size(); ++i)
    result->phases.push_back({linked.functions[i].entry, code.tasks[i], linked.functions[i].bytes});
  result->code_bytes = linked.code_bytes;
  result->code = std::move(linked.owner);
  result->compile_milliseconds = milliseconds_since(start);
  return result;
}

std::shared_ptr<const CompiledKernel> compile(const ir::Kernel& kernel, const Target& target) {
  const auto start = std::chrono::steady_clock::now();
  auto result = std::make_shared<CompiledKernel>(*load(generate_object(kernel, target)));
  result->compile_milliseconds = milliseconds_since(start);
  return result;
}

std::string llvm_text(const ir::Kernel& kernel, const Target& target) {
  const LlvmUse use;
  check(use);
  const Emitted emitted = emit(kernel, target);
  std::string text;
  llvm::raw_string_ostream stream(text);
  emitted.module->print(stream, nullptr);
  return text;
}

std::string assembly(const ir::Kernel& kernel, const Target& target) {
  const LlvmUse use;
  check(use);
  Emitted emitted = emit(kernel, target);
  std::string text = "# ";
  for (char c : ir::print(kernel)) {
    text += c;
    if (c == '\n') text += "# ";
  }
  return text + "\n" + generate(*emitted.module, *emitted.facts, /*assembly=*/true);
}

std::string module_of(std::span<const SymbolKernel> kernels, const Target& target, Form form) {
  const LlvmUse use;
  check(use);
  const MachineFacts& facts = machine_facts(target.isa);
  LlvmOwner<llvm::LLVMContext> context;
  LlvmOwner<llvm::Module> module;
  std::string text;
  calling_llvm([&] {
    context = LlvmOwner(std::make_unique<llvm::LLVMContext>());
    module = LlvmOwner(std::make_unique<llvm::Module>("fusejit", *context));
    describe_machine(*module, facts);
    for (const auto& [kernel, symbol] : kernels)
      emit_module(*module, *kernel, layout(*kernel), lane_facts(*kernel), machine_facts(isa_of(*kernel, target)),
                  symbol);
    if (!kernels.empty()) check_module(*module, *kernels.back().kernel);
    llvm::raw_string_ostream stream(text);
    if (form == Form::llvm) module->print(stream, nullptr);
  });
  return form == Form::llvm ? text : generate(*module, facts, form == Form::assembly);
}

bool can_generate() { return bool(LlvmUse()); }

std::string toolchain() {
  static const std::string& text = *new std::string(fmt::format(
      "llvm {} {}", LLVM_VERSION_STRING, ir::build_id_at(reinterpret_cast<const void*>(&LLVMInitializeX86Target))));
  return text;
}

}  // namespace fusejit::codegen::x86
