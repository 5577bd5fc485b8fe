// CompiledKernel: machine code of one Kernel and what the runtime must hand to it.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "ir/base/scalar.h"

namespace fusejit::codegen {

// One call runs one task of one phase. args: the buffer parameters in order; scalars: the scalar parameters in order,
// 8 bytes each; scratch: 64-byte aligned memory of this worker; work: 64-byte aligned memory of this run of the kernel.
using PhaseEntry = void (*)(const void* const* args, const std::uint64_t* scalars, std::int64_t task, void* scratch,
                            void* work);

struct CompiledPhase {
  PhaseEntry entry = nullptr;
  std::int64_t tasks = 1;
  std::int64_t code_bytes = 0;  // of its instructions, from `entry` on
};

struct CompiledKernel {
  std::string name;
  std::vector<CompiledPhase> phases;
  std::int64_t scratch_bytes = 0;  // per worker
  std::int64_t work_bytes = 0;     // per run
  std::int64_t code_bytes = 0;
  std::int64_t ir_instructions = 0;
  double compile_milliseconds = 0;
  bool is_quick = false;             // slower code that was made in less time
  std::shared_ptr<const void> code;  // owns the machine code
};

}  // namespace fusejit::codegen
