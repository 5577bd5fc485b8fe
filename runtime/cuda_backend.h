// CudaBackend: plans on a CUDA device. Kernels are compiled by NVRTC; steps that a library may take go to cuDNN where
// it is there and has an engine, otherwise to their own kernel.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "ir/graph.h"
#include "runtime/buffer.h"
#include "runtime/cuda/executor.h"
#include "runtime/cuda/kernels.h"
#include "runtime/cudnn/call.h"

namespace fusejit::runtime {

struct CudaBackendOptions {
  cuda::CompileProgram compile = codegen::cuda::compile;
  bool cudnn = true;
  cudnn::Numerics numerics = {};  // of cuDNN's calls
};

class CudaBackend {
 public:
  explicit CudaBackend(std::shared_ptr<cuda::CudaDevice> device, CudaBackendOptions options = {});
  // On the device of that name. Throws DeviceError if it cannot be used, UnsupportedError if nothing compiles for it.
  static std::shared_ptr<CudaBackend> open(const Device& device);
  ~CudaBackend();

  // Compiles and loads what the plan's steps need, on up to `threads` threads. Throws DeviceError, UnsupportedError.
  std::shared_ptr<cuda::CudaExecutor> prepare(std::shared_ptr<const scheduler::Plan> plan, int threads);

  // Arguments of the host are copied to the device first; results are buffers of the device. Does not wait for it. A
  // donated argument of the host stays what it is: its copy is overwritten.
  std::vector<Buffer> run(cuda::CudaExecutor& executor, const ir::Graph& graph, std::span<const Buffer> arguments);

  cuda::CudaDevice& device() { return *device_; }
  // The device's, with cuDNN if that is used and there.
  Target target() const;
  const cuda::CudaKernels& kernels() const { return kernels_; }
  // Why cuDNN does nothing on this device; empty if it is there.
  std::string why_no_cudnn() const;
  // Why steps that cuDNN may take are done by kernels instead: a sentence each.
  std::vector<std::string> refusals() const;

 private:
  struct Cudnn;
  std::vector<Buffer> on_device(const scheduler::Plan& plan, std::span<const Buffer> arguments);
  std::shared_ptr<const cuda::LibraryCall> library_call(const scheduler::PlanStep& step);

  const std::shared_ptr<cuda::CudaDevice> device_;
  const bool use_cudnn_;
  const cudnn::Numerics numerics_;
  cuda::CudaKernels kernels_;
  mutable std::mutex mutex_;
  std::unique_ptr<Cudnn> cudnn_;
  std::vector<std::string> refusals_;
};

// Why kernels cannot be compiled for a device, with what to try; empty if they can.
std::string why_no_kernels(const std::string& device, int compute_capability,
                           const codegen::cuda::NvrtcState& nvrtc = codegen::cuda::nvrtc());

}  // namespace fusejit::runtime
