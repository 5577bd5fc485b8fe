// Machine code of one kernel: LLVM IR -> object bytes -> code in this process, freed with its last user.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "codegen/compiled_kernel.h"
#include "codegen/x86/machine.h"

namespace llvm {
class Module;
}

namespace fusejit::codegen::x86 {

// Triple and layout of data: what a module of this machine says of itself.
void describe_machine(llvm::Module& module, const MachineFacts& facts);
// The code generator's output, an ELF object or assembly text. Changes the module.
std::string generate(llvm::Module& module, const MachineFacts& facts, bool assembly, Effort effort = Effort::full);

struct LinkedCode {
  struct Function {
    PhaseEntry entry;
    std::int64_t bytes;
  };
  std::vector<Function> functions;
  std::int64_t code_bytes = 0;        // of the functions' instructions and constants
  std::shared_ptr<const void> owner;  // frees the code
};
// Links an object with functions phase_0 .. phase_{count-1}. Every kernel has a session of its own, so that
// compilations in several threads share nothing and the code goes with its kernel. DeviceError if linking fails.
LinkedCode link(const std::string& object, std::size_t phases);

}  // namespace fusejit::codegen::x86
