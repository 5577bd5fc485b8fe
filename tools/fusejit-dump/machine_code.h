// The only file of the tool that asks the code generator: UnsupportedError where this build has none for the target.
#pragma once

#include <cstdint>
#include <string>

#include "fusejit/target.h"
#include "ir/kernel/kernel.h"

namespace fusejit::tools {

struct CodeFigures {
  std::int64_t ir_instructions = 0;
  std::int64_t code_bytes = 0;
  double compile_milliseconds = 0;
};
CodeFigures measure_code(const ir::Kernel& kernel, const Target& target);
std::string llvm_text(const ir::Kernel& kernel, const Target& target);
std::string assembly(const ir::Kernel& kernel, const Target& target);

}  // namespace fusejit::tools
