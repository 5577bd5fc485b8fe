// Every row of the op table that kernels may hold, on every dtype, and every cast, as CUDA kernels: a few dozen
// definitions each, whose buffers are written and read by nothing else.
#pragma once

#include <string>
#include <vector>

#include "ir/kernel/kernel.h"

namespace fusejit::test {

struct OpKernel {
  ir::Kernel kernel;
  int pieces = 0;                   // definitions
  std::vector<std::string> labels;  // of each buffer: what it is an operand or result of
  std::vector<double> ulps;         // of each buffer: how far an engine may be off
};

std::vector<OpKernel> op_kernels();

}  // namespace fusejit::test
