#include "tests/support/fake_gpu.h"

#include <fmt/format.h>

#include "frontend/eval.h"
#include "fusejit/runtime.h"
#include "runtime/cuda/kernels.h"

namespace fusejit::test {

FakeGpu::~FakeGpu() { leave(); }

void FakeGpu::leave() { set_options({}); }

void FakeGpu::use(runtime::SessionOptions rest, bool cudnn) {
  leave();
  backend.reset();
  runtime::CudaBackendOptions options;
  options.cudnn = cudnn;
  options.compile = [this](std::string_view program, int capability) { return compile(program, capability); };
  const auto device = CudaDevice::open(driver.table(), 0);
  device->memory().poison_freed(true);
  backend = std::make_shared<runtime::CudaBackend>(device, options);
  rest.cuda = backend;
  set_session(rest);
}

codegen::cuda::CudaBinary FakeGpu::compile(std::string_view program, int compute_capability) {
  constexpr std::string_view kComment = "// ", kOpening = "// kernel @";
  const std::lock_guard lock(mutex_);
  std::string text;  // of the kernel whose comment is read
  for (std::size_t start = 0; start < program.size();) {
    const std::size_t end = std::min(program.find('\n', start), program.size());
    const std::string_view line = program.substr(start, end - start);
    start = end + 1;
    if (line.starts_with(kOpening) || (!text.empty() && line.starts_with(kComment))) {
      text += std::string(line.substr(kComment.size())) + '\n';
      continue;
    }
    if (text.empty()) continue;
    const auto kernel = std::make_shared<const ir::Kernel>(ir::parse_kernel(std::exchange(text, {})));
    const std::string entry = entry_name(*kernel);
    if (program.find(entry) == std::string_view::npos) {
      driver.problem(fmt::format("the kernel in a text's comment is not the one compiled: {} is not in it", entry));
    }
    if (known_.insert(entry).second) define_kernel(driver, kernel, codegen::cuda::emit(*kernel, entry));
  }
  return {compute_capability, kFakeImage, {}, 0};
}

}  // namespace fusejit::test
