// One kernel on the device, with buffers of the test's making.
#pragma once

#include "runtime/cuda/kernels.h"
#include "tests/gpu_check/embedded.h"
#include "tests/gpu_check/machine.h"
#include "tests/unit/cuda/kernels.h"

namespace fusejit::gpu_check {

// Launches a kernel on buffers of the device with these contents, and brings back what it left.
test::Operands run_on_device(Machine& machine, const runtime::cuda::LoadedKernel& loaded, const test::Operands& given);

struct KernelCase {
  std::string name;
  std::shared_ptr<const ir::Kernel> kernel;
  std::vector<double> ulps;  // of each buffer; empty: exact
  bool special = true;       // NaN, infinities and denormals as well
  bool gathers = false;      // indices must lie in the tables
};
KernelCase case_of(const EmbeddedKernel& embedded);
// On ordinary values, and on special ones where the case allows: "" or what differs from the kernel interpreter.
std::string disagreement(Machine& machine, const runtime::cuda::LoadedKernel& loaded, const KernelCase& kernel);

}  // namespace fusejit::gpu_check
