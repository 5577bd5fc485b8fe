#include "tools/fusejit-dump/machine_code.h"

#include "fusejit/error.h"
#ifdef FUSEJIT_X86
#include "codegen/x86/compile.h"
#endif

namespace fusejit::tools {

#ifdef FUSEJIT_X86
CodeFigures measure_code(const ir::Kernel& kernel, const Target& target) {
  const auto compiled = codegen::x86::compile(kernel, target);
  return {compiled->ir_instructions, compiled->code_bytes, compiled->compile_milliseconds};
}
std::string llvm_text(const ir::Kernel& kernel, const Target& target) {
  return codegen::x86::llvm_text(kernel, target);
}
std::string assembly(const ir::Kernel& kernel, const Target& target) { return codegen::x86::assembly(kernel, target); }
#else
namespace {
[[noreturn]] void no_generator(const Target& target) {
  throw UnsupportedError("this build has no x86 code generator (FUSEJIT_X86=OFF); target " + target.str());
}
}  // namespace
CodeFigures measure_code(const ir::Kernel&, const Target& target) { no_generator(target); }
std::string llvm_text(const ir::Kernel&, const Target& target) { no_generator(target); }
std::string assembly(const ir::Kernel&, const Target& target) { no_generator(target); }
#endif

}  // namespace fusejit::tools
