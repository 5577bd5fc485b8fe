#include "tests/support/fake_device/fake_caller.h"

#include <fmt/format.h>

#include "fusejit/error.h"
#include "ir/op.h"
#include "runtime/cudnn/step.h"

namespace fusejit::test {
namespace {

using runtime::cuda::CuPointer;

class KernelCall final : public runtime::cuda::LibraryCall {
 public:
  KernelCall(std::shared_ptr<runtime::cuda::CudaDevice> device,
             std::shared_ptr<const runtime::cuda::LoadedKernel> kernel, std::string stumbles)
      : device_(std::move(device)), kernel_(std::move(kernel)), stumbles_(std::move(stumbles)) {}

  void execute(runtime::cuda::CuStream stream, std::span<const CuPointer> pointers,
               CuPointer workspace) const override {
    if (!stumbles_.empty()) throw DeviceError(stumbles_);
    std::vector<CuPointer> words(pointers.begin(), pointers.end());
    words.push_back(workspace);
    std::vector<void*> arguments;
    for (CuPointer& word : words) arguments.push_back(&word);
    runtime::cuda::DeviceContext& context = device_->context();
    for (const runtime::cuda::Launch& launch : kernel_->launches) {
      context.call(context.driver().launch_kernel, launch.function, launch.grid_x, launch.grid_y, launch.grid_z,
                   launch.block_x, launch.block_y, launch.block_z, launch.shared_bytes, stream, arguments.data(),
                   nullptr);
    }
  }
  std::int64_t workspace_bytes() const override { return kernel_->work_bytes; }
  std::string describe() const override { return kernel_->launches[0].entry; }

 private:
  const std::shared_ptr<runtime::cuda::CudaDevice> device_;
  const std::shared_ptr<const runtime::cuda::LoadedKernel> kernel_;
  const std::string stumbles_;
};

}  // namespace

scheduler::LibraryAnswer FakeCaller::supports(const ir::Graph& ops, const Target& target) const {
  return runtime::cudnn::supports_step(ops, target);
}

std::shared_ptr<const runtime::cuda::LibraryCall> FakeCaller::make(const scheduler::PlanStep& step,
                                                                   const Target& target, std::string& why_not) {
  {
    const std::lock_guard lock(mutex_);
    asked_.push_back(
        fmt::format("{}: {}", static_cast<int>(target.cudnn), ir::name(step.library->graph.results()[0]->op)));
  }
  if (before) why_not = before(step, target.cudnn);
  if (!why_not.empty()) return nullptr;
  const auto kernels = kernels_.get({&step.kernel, 1}, 1);
  if (kernels[0]->counter_bytes > 0 || kernels[0]->scalars > 0) {
    return why_not = "a kernel with counters or scalars", nullptr;
  }
  return std::make_shared<const KernelCall>(device_, kernels[0], stumbles ? stumbles(step) : "");
}

std::vector<std::string> FakeCaller::asked() const {
  const std::lock_guard lock(mutex_);
  return asked_;
}

}  // namespace fusejit::test
