// Kernels of a plan as one text that a compiler takes as it stands (source --standalone, extract): each different
// kernel once, under a symbol of its own, with what it stands for, how it is compiled and how it is launched as
// comments.
#pragma once

#include <string>
#include <vector>

#include "scheduler/plan.h"
#include "tools/fusejit-dump/machine_code.h"
#include "tools/fusejit-dump/planned.h"
#include "tools/fusejit-dump/rows.h"

namespace fusejit::tools {

struct DifferentKernel {
  SymbolKernel code;       // its symbol is an identifier, in the plan its alone: "kernel_layer0_conv2d_bn"
  std::vector<int> steps;  // that run it, all of the plan
  ParameterNames names;    // cuda: of its parameters, in the first of these steps
};
// Those that `steps` run, in the order of the plan.
std::vector<DifferentKernel> different_kernels(const Planned& planned, const std::vector<int>& steps);
std::vector<SymbolKernel> codes(const std::vector<DifferentKernel>& kernels);
// The functions of one in files: "kernel_layer0_conv2d_bn" or its launches (cuda), "kernel_layer0_conv2d_bn_phase_0".
std::vector<std::string> entries(const scheduler::Plan& plan, const DifferentKernel& one);
// The steps that run a kernel, each with what its parameters are there, as comment lines.
std::string legends(const scheduler::Plan& plan, const DifferentKernel& one, const char* comment);

// CUDA C++ for NVRTC and nvcc; where the compiler is none for CUDA, C++17.
std::string standalone_cuda(const scheduler::Plan& plan, const std::vector<DifferentKernel>& kernels);
// LLVM IR, one module.
std::string standalone_llvm(const scheduler::Plan& plan, const std::vector<DifferentKernel>& kernels);

}  // namespace fusejit::tools
