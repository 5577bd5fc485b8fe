#include "tests/support/fake_device/fake_gpu.h"

#include "frontend/evaluation/engine.h"
#include "fusejit/runtime.h"
#include "tests/support/fake_device/fake_compiler.h"

namespace fusejit::test {

FakeGpu::~FakeGpu() { leave(); }

void FakeGpu::leave() { set_options({}); }

void FakeGpu::use(runtime::SessionOptions rest, bool cudnn, runtime::cuda::CompileProgram compile) {
  leave();
  backend.reset();
  runtime::CudaBackendOptions options;
  options.numerics.tf32 = true;  // f32 convolutions are calls, too
  options.cudnn = cudnn;
  options.compile = compile ? std::move(compile) : fake_compiler(driver);
  const auto device = CudaDevice::open(driver.table(), 0);
  device->memory().poison_freed(true);
  backend = std::make_shared<runtime::CudaBackend>(device, options);
  rest.backend = backend;
  set_session(rest);
}

}  // namespace fusejit::test
