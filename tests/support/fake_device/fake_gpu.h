// A CUDA device for the front end where there is none: the driver without a device, and a compiler that
// teaches it what is to be run (fake_compiler.h).
#pragma once

#include <memory>

#include "runtime/cuda/backend.h"
#include "runtime/cuda/kernels.h"
#include "runtime/session.h"
#include "tests/support/fake_device/fake_kernels.h"

namespace fusejit::test {

class FakeGpu {
 public:
  explicit FakeGpu(FakeDevice device = {}) : driver(std::move(device)) {}
  ~FakeGpu();

  // Makes the default session one for which this is cuda:0; `rest` is what else it is to be. Blocks given back hold
  // NaN.
  // With `cudnn` it is looked for, but on this device it can only be missed. `compile`: instead of fake_compiler().
  void use(runtime::SessionOptions rest = {}, bool cudnn = false, runtime::cuda::CompileProgram compile = {});
  // Goes back to the machine's own devices.
  static void leave();

  FakeDriver driver;
  std::shared_ptr<runtime::CudaBackend> backend;
};

}  // namespace fusejit::test
