// Names of machine code for tools that look at the process: `perf` with FUSEJIT_PERF=1, GDB with FUSEJIT_GDB=1. A
// kernel is called as the first step that wanted it, "layer1_0_conv2_bn", and each phase of several "…_phase0", ….
#pragma once

#include <memory>
#include <span>
#include <string>

#include "codegen/compiled_kernel.h"

namespace fusejit::runtime {

struct CodeName {
  std::string name;
  const void* address;
  std::int64_t bytes;
};

// The kernel, known under the name for as long as its code is there; as it is where nobody asked for names.
std::shared_ptr<const codegen::CompiledKernel> named_code(std::shared_ptr<const codegen::CompiledKernel> kernel,
                                                          const std::string& name);

// Lines of /tmp/perf-PID.map, where `perf report` looks names up. Nobody is told of code that goes: what takes its
// place is a later line. Does nothing where the file cannot be written.
void add_to_perf_map(std::span<const CodeName> names);

}  // namespace fusejit::runtime
