#include "tests/support/cuda_shim/shim_gpu.h"

namespace fusejit::test {

codegen::cuda::CudaBinary ShimGpu::compiled(std::string_view program, int compute_capability) {
  const std::lock_guard lock(mutex_);
  std::vector<std::shared_ptr<const ir::Kernel>> kernels;
  std::vector<codegen::cuda::CudaSource> sources;
  for (const std::string& text : kernel_texts(program)) {
    auto kernel = std::make_shared<const ir::Kernel>(ir::parse_kernel(text));
    const std::string entry = runtime::cuda::entry_name(*kernel);
    if (!entries_.insert(entry).second) continue;
    sources.push_back(codegen::cuda::emit(*kernel, entry));
    kernels.push_back(std::move(kernel));
  }
  if (!kernels.empty()) {
    Shim& shim = *shims_.emplace_back(std::make_unique<Shim>(std::move(sources)));
    shim.open();
    for (std::size_t k = 0; k < kernels.size(); ++k)
      define_kernel(gpu_.driver, kernels[k], shim, k, ir::TaskOrder::shuffled);
  }
  return codegen::cuda::CudaBinary{compute_capability, kFakeImage, {}, 0};
}

}  // namespace fusejit::test
