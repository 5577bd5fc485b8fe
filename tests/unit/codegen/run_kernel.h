// Runs one kernel text as machine code, for bit-for-bit comparison with the interpreter.
#pragma once

#include <string>

#include "codegen/x86/compile.h"
#include "tests/support/operands.h"

namespace fusejit::test {

// The same kernel for another isa: the isa word, and for x86:v2 each fma as mul then add.
std::string for_isa(const std::string& text, Isa isa);

// Runs all tasks phase by phase in the given order.
void run_compiled(const codegen::CompiledKernel& compiled, Operands& operands, ir::TaskOrder order);

}  // namespace fusejit::test
