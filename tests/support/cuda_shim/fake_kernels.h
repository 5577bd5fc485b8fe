// Kernels for FakeDriver whose work is the generated CUDA text itself, compiled for the CPU by the shim.
#pragma once

#include "tests/support/cuda_shim/shim.h"
#include "tests/support/fake_device/fake_kernels.h"

namespace fusejit::test {

// Teaches the driver every entry of kernel `number` of an open shim. Threads and blocks run in this order; counters
// must be zero before and after.
void define_kernel(FakeDriver& fake, const std::shared_ptr<const ir::Kernel>& kernel, Shim& shim, std::size_t number,
                   ir::TaskOrder order);

}  // namespace fusejit::test
